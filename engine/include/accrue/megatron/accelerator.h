// SPDX-License-Identifier: Apache-2.0
// Accelerator with the Megatron-LM plug-in. Calling the prepared model runs a whole train step.
//
//   Accelerator accelerator({.megatron_lm_plugin = plugin}, mesh);
//   auto& [model, optimizer, scheduler, loaders] =
//       accelerator.prepare(spec, adamw, MegatronLMDummyScheduler{.total_num_steps = 100}, {train});
//   model.train();
//   for (const Batch& batch : loaders[0]) {
//     const auto out = model(batch);
//     accelerator.backward(out.loss);  // does nothing, like step() and zero_grad()
//     optimizer.step();
//     scheduler.step();
//     optimizer.zero_grad();
//   }
//
// In train mode model(batch) clears gradients, runs num_micro_batches micro-batches through the pipeline, reduces,
// clips, steps and advances the schedule. In eval mode it runs forward only. Thread: training. Source:
// Accelerate 1.9.0; resources/manual/differences.md lists the differences.
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
  pad  ///< the batch is filled up with rows that no loss counts: losses are means over the real rows
};

/// Number type of the model's computations. Parameters are updated in float32, and losses in float16 are scaled.
enum class MixedPrecision { no, fp16, bf16 };

struct AcceleratorOptions {
  MegatronLMPlugin megatron_lm_plugin;
  /// Must be 1: num_micro_batches sets the accumulation.
  std::int64_t gradient_accumulation_steps = 1;
  LastBatch last_batch = LastBatch::drop;
  /// Token that ends a document. Unset: the last token of a ModelSpec's vocabulary; none for a provider's model.
  std::optional<std::int64_t> eod_token;
  std::uint64_t seed = 1234;        ///< of weights, of dropout and of shuffled loaders
  MegatronEnvironment environment;  ///< empty: std::getenv
  /// Names for the plug-in's fields; it must outlive the Accelerator's construction. Null: none.
  const Registry* registry = nullptr;
  /// BERT: fine-tunes a classifier with this many labels instead of pre-training.
  std::optional<std::int64_t> num_labels;
  MixedPrecision mixed_precision = MixedPrecision::no;
};

struct ModelOutput {
  /// The sum of all reported losses, averaged over micro-batches and replicas; 0 except on the last stage.
  at::Tensor loss;
  std::vector<std::pair<std::string, double>> losses;  ///< by name; empty except on the last stage
  /// With return_logits, on the last stage: [rows of the batch, positions, vocabulary]. Undefined elsewhere.
  at::Tensor logits;
};

/// The chunks that this rank holds.
class PreparedModel {
 public:
  /// Runs a train step, or in eval mode forward only. `batch`: one replica's rows, micro-batch size x
  /// num_micro_batches. Collective: the world.
  ModelOutput operator()(const Batch& batch);
  /// Returns the logits [rows, positions, vocabulary] on every rank, as generate() takes them. `batch`: under the
  /// model's own names ("tokens" for a GPT). Collective: the pipeline and the tensor axis.
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

/// step() and zero_grad() do nothing, because model(batch) has done both.
class PreparedOptimizer {
 public:
  void step() {}
  void zero_grad() {}
  /// Whether the last update was skipped because its gradients were not finite.
  bool step_was_skipped() const;
  torch::optim::Optimizer& optimizer();

 private:
  friend struct AcceleratorImpl;
  explicit PreparedOptimizer(AcceleratorImpl& impl) : impl_(impl) {}
  AcceleratorImpl& impl_;
};

/// step() does nothing, because model(batch) advances the schedule.
class PreparedScheduler {
 public:
  void step() {}
  /// Returns the rate of the next update, before the factors of groups.
  double get_last_lr() const;
  std::int64_t num_steps() const;  ///< samples of the updates made
  const LrCurve& curve() const;

 private:
  friend struct AcceleratorImpl;
  explicit PreparedScheduler(AcceleratorImpl& impl) : impl_(impl) {}
  AcceleratorImpl& impl_;
};

/// Batches of micro-batch size x num_micro_batches rows for this replica. A pass ends with the epoch. The epochs of a
/// cyclic loader may end within a step; a pass then has as many batches as an epoch has whole ones.
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

  /// Number of batches of an epoch.
  std::int64_t length() const;
  std::int64_t epoch() const { return epoch_; }
  /// Number of batches of the epoch that were returned.
  std::int64_t position() const { return position_; }
  /// Continues after this many samples of all replicas, counted over all epochs.
  void continue_after(std::int64_t consumed_samples);
  std::optional<Batch> next();

 private:
  friend struct AcceleratorImpl;
  friend class Accelerator;
  MegatronDataset data_;
  std::optional<CyclicSampler> cyclic_;  ///< replaces the data set's order
  SampleOrder order_;                    ///< its micro-batch is a batch of one replica
  std::int64_t replica_ = 0;
  std::int64_t epoch_ = 0;
  std::int64_t position_ = 0;
};

/// One evaluation over eval_iters batches.
struct Evaluation {
  std::int64_t iteration = 0;
  std::vector<std::pair<std::string, double>> losses;  ///< means; empty except on the last stage
};

/// Counts of the run so far.
struct Progress {
  std::int64_t iteration = 0;  ///< train steps begun
  std::int64_t skipped = 0;    ///< updates skipped
  std::int64_t nan = 0;        ///< steps whose loss was not finite
  std::int64_t consumed_train_samples = 0;
  std::int64_t consumed_valid_samples = 0;
  double loss_scale = 1.0;          ///< of the next step
  std::optional<double> grad_norm;  ///< of the last step, before clipping; none with gradient_clipping = 0
};

/// A GPT, a BERT or a T5 as a spec describes it, or a provider that makes the model.
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

  /// Returns the grid of ranks for a plug-in and a world size. Errors: config.
  static Result<RankGrid> grid_of(const MegatronLMPlugin& plugin, std::int64_t world,
                                  const MegatronEnvironment& environment = {});
  /// Does the same for a model. The decoder of a T5 begins in the middle of the pipeline unless the plug-in sets it.
  static Result<RankGrid> grid_of(const MegatronLMPlugin& plugin, std::int64_t world, const ModelSpec& model,
                                  const MegatronEnvironment& environment = {});

  /// Call it once. The optimizer only conveys its class and defaults; it need not have parameters. The first loader
  /// trains, the second validates, the third tests. Collective: the world. Errors: throws std::invalid_argument, and
  /// ResultError (disk) for tensorboard_dir.
  Prepared& prepare(const ModelSource& model, const torch::optim::Optimizer& optimizer,
                    const MegatronLMDummyScheduler& scheduler, const std::vector<LoaderSource>& loaders);

  void backward(const at::Tensor& /*loss*/) {}
  /// True on the last rank, which has the losses.
  bool is_main_process() const;
  std::int64_t process_index() const;
  std::int64_t num_processes() const;
  /// Samples of an update: replicas x micro-batch size x num_micro_batches. 1 before prepare().
  std::int64_t global_batch_size() const;
  Mesh& mesh();

  /// Evaluates eval_iters batches of a loader, forward only; at its end the loader starts again. If a second loader was
  /// prepared, every eval_interval-th train step does this automatically. Collective: the world.
  Evaluation evaluate(PreparedLoader& loader);
  /// Evaluations made by train steps, in order.
  const std::vector<Evaluation>& evaluations() const;

  at::Tensor gather(const at::Tensor& tensor);  ///< over the replicas; Collective: the data axis

  /// Saves model, optimizer, schedule, iteration, consumed samples and every rank's random numbers, as a checkpoint
  /// like a run's: checkpoints/step-N, after N updates, in a folder that all ranks can read. Keeps the two newest.
  /// Later checkpoints of an abandoned continuation are renamed to abandoned-step-N, one of the same update to
  /// replaced-step-N. Collective: the world. Errors: disk.
  Result<void> save_state(const std::filesystem::path& folder);
  /// Loads the newest complete state. The layout may differ: tensor, pipeline and data ranks, and
  /// use_distributed_optimizer. For a provider's model only the number of data ranks may differ, unless its chunks
  /// describe their parameters (ParameterPlace). In another layout dropout draws other numbers.
  ///
  /// An update must have the same number of samples as in the saved state, the optimizer the same class and options,
  /// and indexed data the same number of samples, which follows from the run's length. The schedule of rates and weight
  /// decays must equal the saved one, unless other_megatron_args has use_checkpoint_opt_param_scheduler (uses the saved
  /// one) or override_opt_param_scheduler (uses the one set here). Loaders continue after the consumed samples.
  ///
  /// Damaged states are skipped; rank 0 names each on standard error. Everything is read and checked on every rank
  /// first, so an error changes nothing. Collective: the world. Errors: config (a different set-up, by name), protocol
  /// (no state or no complete one), disk.
  Result<void> load_state(const std::filesystem::path& folder);

  const Progress& progress() const;
  const ResolvedMegatron& plugin() const;
  Timers& timers();

 private:
  std::unique_ptr<AcceleratorImpl> impl_;
};

}  // namespace accrue::megatron
