// SPDX-License-Identifier: Apache-2.0
// Accelerator with the Megatron-LM plug-in: a call of the prepared model is a whole train step.
//
//   Accelerator accelerator({.megatron_lm_plugin = plugin}, mesh);
//   auto& [model, optimizer, scheduler, loaders] =
//       accelerator.prepare(spec, adamw, MegatronLMDummyScheduler{.total_num_steps = 100}, {train});
//   model.train();
//   for (const Batch& batch : loaders[0]) {
//     const auto out = model(batch);
//     accelerator.backward(out.loss);  // nothing to do: so are step() and zero_grad()
//     optimizer.step();
//     scheduler.step();
//     optimizer.zero_grad();
//   }
//
// In train mode model(batch) clears gradients, takes num_micro_batches micro-batches through the pipeline, reduces,
// clips, steps and moves the schedule. In eval mode it runs forward only. Thread: training.
// Source: Accelerate 1.9.0. What differs from it is in resources/manual/differences.md.
#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "accrue/accumulation/accelerate/prepared_loader.h"
#include "accrue/comm/mesh.h"
#include "accrue/megatron/megatron_lm_plugin.h"
#include "accrue/megatron/registry.h"
#include "accrue/megatron/timers.h"
#include "accrue/run/base/result.h"
#include "accrue/run/facts/sample_order.h"
#include "accrue/run/window/lr_curve.h"

namespace accrue::megatron {

struct AcceleratorImpl;

/// Treatment of the rows at the end of an epoch that do not fill a batch of all replicas.
enum class LastBatch {
  drop,
  pad  ///< the batch is filled up with rows that count in no loss: losses are means over the real ones
};

/// Number type of the model's computations. Parameters are updated in float32, and float16 losses are scaled.
enum class MixedPrecision { no, fp16, bf16 };

struct AcceleratorOptions {
  MegatronLMPlugin megatron_lm_plugin;
  /// Must be 1: num_micro_batches is the accumulation.
  std::int64_t gradient_accumulation_steps = 1;
  LastBatch last_batch = LastBatch::drop;
  /// Ends a document. Unset: the last token of a ModelSpec's vocabulary; with a provider's model none is known.
  std::optional<std::int64_t> eod_token;
  std::uint64_t seed = 1234;        ///< of weights, of dropout and of shuffled loaders
  MegatronEnvironment environment;  ///< empty: std::getenv
  /// Names for the plug-in's fields; it must outlive the Accelerator's construction. Null: none.
  const Registry* registry = nullptr;
  /// Of a BERT: a classifier with so many labels in place of pre-training.
  std::optional<std::int64_t> num_labels;
  MixedPrecision mixed_precision = MixedPrecision::no;
};

struct ModelOutput {
  /// The sum of all reported losses, averaged over micro-batches and replicas; 0 but on the last stage.
  at::Tensor loss;
  std::vector<std::pair<std::string, double>> losses;  ///< by name; empty but on the last stage
  /// With return_logits, on the last stage: [rows of the batch, positions, vocabulary]. Undefined elsewhere.
  at::Tensor logits;
};

/// The chunks that this rank holds.
class PreparedModel {
 public:
  /// Rows of one replica: micro-batch size x num_micro_batches. Collective: the world.
  ModelOutput operator()(const Batch& batch);
  /// Of a batch in the model's own terms ("tokens" of a GPT), without a loss: [rows, positions, vocabulary], on every
  /// rank, as generate() takes it. Collective: the pipeline and the tensor axis.
  at::Tensor logits(const Batch& batch);
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const;
  const std::vector<std::shared_ptr<ModelChunk>>& chunks() const;

 private:
  friend struct AcceleratorImpl;
  explicit PreparedModel(AcceleratorImpl& impl) : impl_(impl) {}
  AcceleratorImpl& impl_;
};

/// step() and zero_grad() do nothing: model(batch) has done it.
class PreparedOptimizer {
 public:
  void step() {}
  void zero_grad() {}
  /// The last update was left out, because its gradients were not finite.
  bool step_was_skipped() const;
  torch::optim::Optimizer& optimizer();

 private:
  friend struct AcceleratorImpl;
  explicit PreparedOptimizer(AcceleratorImpl& impl) : impl_(impl) {}
  AcceleratorImpl& impl_;
};

/// step() does nothing: the schedule moves with updates.
class PreparedScheduler {
 public:
  void step() {}
  /// The rate of the next update, before factors of groups.
  double get_last_lr() const;
  std::int64_t num_steps() const;  ///< samples of updates that were made
  const LrCurve& curve() const;

 private:
  friend struct AcceleratorImpl;
  explicit PreparedScheduler(AcceleratorImpl& impl) : impl_(impl) {}
  AcceleratorImpl& impl_;
};

/// Batches of micro-batch size x num_micro_batches rows for this replica. A pass ends with the epoch; of a
/// cyclic loader, whose epochs turn within a step, after as many batches as an epoch has whole ones.
class PreparedLoader {
 public:
  class Iterator {
   public:
    explicit Iterator(PreparedLoader* loader) : loader_(loader) { ++*this; }
    const Batch& operator*() const { return *batch_; }
    Iterator& operator++();
    bool operator==(std::default_sentinel_t /*end*/) const { return !batch_.has_value(); }

   private:
    PreparedLoader* loader_;
    std::optional<Batch> batch_;
  };
  Iterator begin() { return Iterator(this); }
  static std::default_sentinel_t end() { return {}; }

  /// Batches of an epoch.
  std::int64_t length() const;
  std::int64_t epoch() const { return epoch_; }
  /// Batches of the epoch that were handed out.
  std::int64_t position() const { return position_; }
  /// The next batch comes after so many samples of all replicas, over all epochs.
  void continue_after(std::int64_t consumed_samples);
  std::optional<Batch> next();

 private:
  friend struct AcceleratorImpl;
  friend class Accelerator;
  MegatronDataset data_;
  std::optional<CyclicSampler> cyclic_;  ///< in place of the data set's order
  SampleOrder order_;                    ///< its micro-batch is a batch of one replica
  std::int64_t replica_ = 0;
  std::int64_t epoch_ = 0;
  std::int64_t position_ = 0;
};

/// One evaluation over eval_iters batches.
struct Evaluation {
  std::int64_t iteration = 0;
  std::vector<std::pair<std::string, double>> losses;  ///< means; empty but on the last stage
};

/// Counts of the run so far.
struct Progress {
  std::int64_t iteration = 0;  ///< train steps begun
  std::int64_t skipped = 0;    ///< updates left out
  std::int64_t nan = 0;        ///< steps whose loss was not finite
  std::int64_t consumed_train_samples = 0;
  std::int64_t consumed_valid_samples = 0;
  double loss_scale = 1.0;          ///< of the next step
  std::optional<double> grad_norm;  ///< of the last step, before clipping; none with gradient_clipping = 0
};

/// A GPT, a BERT or a T5 of the core's description, or whatever a provider makes.
using ModelSource = std::variant<ModelSpec, ModelProvider>;
using LoaderSource = std::variant<accelerate::MapLoader<Batch>, MegatronLMDummyDataLoader>;

struct Prepared {
  PreparedModel model;
  PreparedOptimizer optimizer;
  PreparedScheduler scheduler;
  std::vector<PreparedLoader> loaders;
};

class Accelerator {
 public:
  /// The mesh must have the plug-in's tensor and pipeline degrees (grid_of()) and outlive this. Errors: throws
  /// std::invalid_argument with every rule that the plug-in breaks.
  Accelerator(AcceleratorOptions options, Mesh& mesh);
  ~Accelerator();
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  /// The ranks that a plug-in asks for in a world. Errors: config.
  static Result<RankGrid> grid_of(const MegatronLMPlugin& plugin, std::int64_t world,
                                  const MegatronEnvironment& environment = {});
  /// The same for a model: a T5's decoder begins in the middle of the pipeline where the plug-in does not say.
  static Result<RankGrid> grid_of(const MegatronLMPlugin& plugin, std::int64_t world, const ModelSpec& model,
                                  const MegatronEnvironment& environment = {});

  /// Once. The optimizer is only a carrier of class and defaults; it may hold no parameters. The first loader trains,
  /// the second validates, the third tests. Collective: the world. Errors: throws std::invalid_argument, and
  /// ResultError (disk) for tensorboard_dir.
  Prepared& prepare(const ModelSource& model, const torch::optim::Optimizer& optimizer,
                    const MegatronLMDummyScheduler& scheduler, const std::vector<LoaderSource>& loaders);

  void backward(const at::Tensor& /*loss*/) {}
  /// The last rank: it has the losses.
  bool is_main_process() const;
  std::int64_t process_index() const;
  std::int64_t num_processes() const;
  /// Samples of an update: replicas x micro-batch size x num_micro_batches. 1 before prepare().
  std::int64_t global_batch_size() const;
  Mesh& mesh();

  /// Over eval_iters batches of a loader, forward only; the loader starts again where it ends. Every eval_interval-th
  /// train step does this by itself where a second loader was prepared. Collective: the world.
  Evaluation evaluate(PreparedLoader& loader);
  /// Those that train steps made, in order.
  const std::vector<Evaluation>& evaluations() const;

  at::Tensor gather(const at::Tensor& tensor);  ///< over the replicas; Collective: the data axis

  /// Model, optimizer, schedule, iteration, consumed samples and random numbers of every rank, as a checkpoint like a
  /// run's: checkpoints/step-N in a folder that all ranks see, after N updates. The two newest are kept. Later ones, of
  /// another course, are set aside as abandoned-step-N, and one of the same update as replaced-step-N. Collective: the
  /// world. Errors: disk.
  Result<void> save_state(const std::filesystem::path& folder);
  /// The newest state that is whole, into what was prepared alike, in any layout: other tensor, pipeline and data
  /// ranks, with or without use_distributed_optimizer. Of a provider's model only the data ranks may be others, unless
  /// its chunks say where their parameters belong (ParameterPlace). In another layout dropout draws other numbers.
  /// Damaged states are passed over; rank 0 names each on its standard error. Loaders go on after the samples that were
  /// consumed. An update must have as many samples as then, and the optimizer the same class and options. The schedule
  /// of rates and weight decays must be the saved one, unless other_megatron_args have
  /// use_checkpoint_opt_param_scheduler (what was saved goes on) or override_opt_param_scheduler (what is set here);
  /// indexed data must have as many samples as then, which follow from the run's length. Everything is read and checked
  /// on every rank first: after an error nothing has changed. Collective: the world. Errors: config (of another set-up,
  /// by name), protocol (no state is there, or none that is whole), disk.
  Result<void> load_state(const std::filesystem::path& folder);

  const Progress& progress() const;
  const ResolvedMegatron& plugin() const;
  Timers& timers();

 private:
  std::unique_ptr<AcceleratorImpl> impl_;
};

}  // namespace accrue::megatron
