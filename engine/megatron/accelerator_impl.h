// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accrue/accumulation/accumulation_driver.h"
#include "accrue/megatron/accelerator.h"
#include "accrue/run/record/tensorboard_writer.h"
#include "accrue/update/dynamic_scale.h"
#include "megatron/chunk_optimizer.h"
#include "megatron/made_model.h"
#include "megatron/schedule.h"
#include "megatron/step_runner.h"
#include "update/judgement.h"

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
  /// Gathers logits over the tensor ranks and removes the columns of padding. Shapes: [..., V / t] -> [..., classes].
  at::Tensor whole_logits(at::Tensor logits) const;
  /// Copies the counts of the window and the loss scale to `progress`, which the program reads.
  void note_progress();
  /// Seeds two random streams as Megatron-LM does: one shared by a stage's ranks, and one per tensor rank.
  void seed_generators(std::uint64_t seed) const;
  /// Returns the name, in a state, of a value that only this part of the model has. `divided`: each tensor rank has its
  /// own.
  std::string name_in_state(std::size_t chunk, const std::string& key, bool divided) const;
  /// Samples of the updates made.
  std::int64_t schedule_position() const { return driver->window().position().schedule_position(); }
  const MegatronSpec& plugin() const { return resolved.effective; }

  AcceleratorOptions options;
  Mesh& mesh;
  ResolvedMegatron resolved;
  TensorAxis axis;
  ParallelSpec parallel;
  std::int64_t micro_batch = 1;         ///< b
  std::int64_t num_micro_batches = 1;   ///< m
  std::int64_t global_batch = 1;        ///< B
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
  std::shared_ptr<torch::nn::Module> all_chunks;  ///< the module that the reducer sees
  std::unique_ptr<DistributedDataParallel> ddp;
  std::unique_ptr<ChunkOptimizer> optimizer;
  std::optional<AccumulationDriver> driver;  ///< its window counts
  std::shared_ptr<AbstractTrainStep> step;
  std::unique_ptr<StepRunner> runner;
  TensorboardWriter tensorboard;  ///< on the last rank
  std::optional<Prepared> prepared;

 private:
  void check_plugin();
  void take_model(MadeModel made);
  /// Reduces, completes, divides, unscales and, if they are finite, clips the gradients.
  Judgement finish_gradients(const StepSums& sums, const Division& division);
  void make_step(TrainStepArgs args);
  void make_optimizer(const torch::optim::Optimizer& carrier);
  MegatronDataset indexed_data(const MegatronLMDummyDataLoader& loader, std::size_t which) const;
  PreparedLoader make_loader(const LoaderSource& source, std::size_t which);
};

/// Writes the figures of a train step to TensorBoard. Collective, like ChunkOptimizer's, if norms or zeros are
/// written.
void write_scalars(AcceleratorImpl& impl, const ModelOutput& out, double lr, double seconds);
void write_evaluation(AcceleratorImpl& impl, const Evaluation& evaluation);

}  // namespace accrue::megatron
