// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accrue/accumulation/accumulation_driver.h"
#include "accrue/megatron/accelerator.h"
#include "accrue/run/tensorboard_file.h"
#include "accrue/update/dynamic_scale.h"
#include "megatron/chunk_optimizer.h"
#include "megatron/schedule_state.h"
#include "megatron/step_runner.h"

namespace accrue::megatron {

struct AcceleratorImpl {
  AcceleratorImpl(AcceleratorOptions given, Mesh& world);

  void prepare(const ModelSource& model, const torch::optim::Optimizer& carrier,
               const MegatronLMDummyScheduler& scheduler, const std::vector<LoaderSource>& sources);
  ModelOutput train_step(const Batch& batch);
  ModelOutput evaluate_step(const Batch& batch);
  Evaluation evaluate(PreparedLoader& loader);
  std::vector<Batch> micro_batches(const Batch& batch) const;
  ModelOutput output_of(const StepSums& sums) const;
  /// Over the tensor ranks, without columns of padding.
  at::Tensor whole_logits(at::Tensor logits) const;
  void write_scalars(const ModelOutput& out, double lr, double seconds);
  void write_evaluation(const Evaluation& evaluation);
  /// Where the window and the loss scale stand, into what the program reads.
  void note_progress();
  /// As Megatron-LM does: one stream that a stage's ranks share, one that tensor ranks do not.
  void seed_generators(std::uint64_t seed) const;
  /// Of what only this part of the model knows. `divided`: each tensor rank has its own.
  std::string name_in_state(std::size_t chunk, const std::string& key, bool divided) const;
  /// Samples of updates that were made.
  std::int64_t schedule_position() const { return driver->window().position().schedule_position(); }
  const MegatronSpec& plugin() const { return resolved.effective; }

  AcceleratorOptions options;
  Mesh& mesh;
  ResolvedMegatron resolved;
  TensorAxis axis;
  ParallelSpec parallel;
  std::int64_t micro_batch = 1;        ///< b
  std::int64_t num_micro_batches = 1;  ///< m
  std::int64_t global_batch = 1;       ///< B
  std::optional<std::int64_t> vocabulary;
  std::optional<ModelSpec> model_spec;  ///< unless a provider makes the model
  DynamicScale loss_scale;              ///< of float16
  bool is_train = true;
  bool skipped_last = false;
  Progress progress;
  std::int64_t samples_before = 0;  ///< consumed_samples of the training data, before the first window
  Schedule schedule;
  std::map<std::size_t, std::int64_t> indexed_samples;  ///< of each MegatronLMDummyDataLoader, by its place
  Timers timers;
  std::vector<Evaluation> evaluations;
  std::vector<std::shared_ptr<ModelChunk>> chunks;
  std::shared_ptr<torch::nn::Module> all_chunks;  ///< what the reducer sees
  std::unique_ptr<DistributedDataParallel> ddp;
  std::unique_ptr<ChunkOptimizer> optimizer;
  std::optional<AccumulationDriver> driver;  ///< its window counts
  std::shared_ptr<AbstractTrainStep> step;
  std::unique_ptr<StepRunner> runner;
  std::unique_ptr<TensorboardFile> tensorboard;  ///< on the last rank, until its disk is full
  std::optional<Prepared> prepared;

 private:
  void write(const TensorboardScalars& scalars, std::int64_t iteration);
  void check_plugin();
  /// The type that mixed precision computes in; undefined: the model's own.
  std::optional<Dtype> half_type() const;
  void make_loss_scale();
  void make_chunks(const ModelSource& model);
  void check_model(const ModelSpec& model);
  std::pair<ModelProvider, std::int64_t> provider_of(const ModelSpec& spec);
  std::shared_ptr<AbstractTrainStep> step_of(const TrainStepArgs& args) const;
  void make_step(TrainStepArgs args);
  void make_optimizer(const torch::optim::Optimizer& carrier);
  void make_schedule(const MegatronLMDummyScheduler& scheduler, double lr, double weight_decay);
  PreparedLoader make_loader(const LoaderSource& source, std::size_t which);
};

}  // namespace accrue::megatron
