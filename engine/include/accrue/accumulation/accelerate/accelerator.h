// SPDX-License-Identifier: Apache-2.0
// Accelerator: Hugging Face Accelerate's gradient accumulation for any LibTorch program. It is an object: two of them
// in one process know nothing of each other, and an evaluation cannot move a training's counter.
//
//   accrue::accelerate::Accelerator accelerator({.gradient_accumulation_steps = 4}, *axis);
//   accelerator.prepare(*model);
//   auto& optimizer = accelerator.prepare(sgd);
//   auto loader = accelerator.prepare(map_loader(samples, fetch, {.batch_size = 2}));
//   for (auto& batch : loader) {
//     auto scope = accelerator.accumulate(model);
//     accelerator.backward(loss_of(model, batch));
//     optimizer.step();
//     optimizer.zero_grad();
//   }
//
// Source: Hugging Face Accelerate 1.15. Thread: the training thread. What it is given (modules, optimizers, the axis)
// must outlive it; what it hands out ends with it.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <concepts>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "accrue/accumulation/accelerate/accelerated_optimizer.h"
#include "accrue/accumulation/accelerate/accelerated_scheduler.h"
#include "accrue/accumulation/accelerate/accelerator_options.h"
#include "accrue/accumulation/accelerate/accelerator_scopes.h"
#include "accrue/accumulation/accelerate/gradient_state.h"
#include "accrue/accumulation/accelerate/memory_search.h"
#include "accrue/accumulation/accelerate/prepared_loader.h"
#include "accrue/accumulation/autocast_scope.h"
#include "accrue/parallel/distributed_data_parallel.h"
#include "accrue/run/result.h"

namespace accrue::accelerate {

enum class Reduction { none, sum, mean };

/// What save_state() keeps beyond Accelerate's own (models, optimizers, schedulers, scaler, step, RNG).
struct SaveStateOptions {
  bool gradients = false;  ///< the open window's, of every rank, so that a resume inside a window loses nothing
  bool loaders = false;    ///< epoch and position of every loader, so that the next pass goes on where this one was
};

/// A torch::nn::ModuleHolder.
template <typename T>
concept HoldsModule = requires(T& holder) {
  requires std::derived_from<std::remove_cvref_t<decltype(*holder.ptr())>, torch::nn::Module>;
};

/// What Accelerator::prepare() takes by itself.
template <typename T>
concept Preparable = HoldsModule<T> || std::derived_from<std::remove_cvref_t<T>, torch::nn::Module> ||
    std::derived_from<std::remove_cvref_t<T>, torch::optim::Optimizer> ||
    std::convertible_to<T, std::shared_ptr<BaseOptimizer>> || std::convertible_to<T, std::shared_ptr<BaseScheduler>> ||
    requires(std::remove_cvref_t<T>& loader) {
  loader.fetch;
} || requires(std::remove_cvref_t<T>& source) {
  source.drained_when_cut();
};

class Accelerator {
 public:
  /// `axis`: the data axis; single_communicator() for a program that is alone. Errors: throws std::invalid_argument as
  /// resolve_plugin() does, and for ways to reduce that could not give the window's gradients.
  Accelerator(AcceleratorOptions options, Communicator& axis);
  ~Accelerator();
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  /// Wraps a module, which goes to device() first; go on calling the module itself. Collective: the axis.
  DistributedDataParallel& prepare(torch::nn::Module& module);
  /// What a module holder holds.
  template <HoldsModule Holder>
  DistributedDataParallel& prepare(Holder& holder) {
    return prepare(*holder.ptr());
  }
  /// Errors: throws std::invalid_argument for an optimizer that is prepared already.
  AcceleratedOptimizer& prepare(torch::optim::Optimizer& optimizer);
  AcceleratedOptimizer& prepare(std::shared_ptr<BaseOptimizer> optimizer);
  /// `optimizers`: those whose skipped steps hold the schedule; none named means all that are prepared.
  AcceleratedScheduler& prepare(std::shared_ptr<BaseScheduler> scheduler,
                                std::vector<const AcceleratedOptimizer*> optimizers = {});
  /// A scheduler of LibTorch's own, and the optimizer it was made for.
  AcceleratedScheduler& prepare(torch::optim::LRScheduler& scheduler, AcceleratedOptimizer& optimizer,
                                std::optional<std::int64_t> total_steps = std::nullopt);
  /// Map-style data, sharded over the ranks.
  template <typename Batch>
  PreparedLoader<Batch> prepare(MapLoader<Batch> loader) {
    return PreparedLoader<Batch>(std::move(loader), state(), axis());
  }
  /// Batches that the source makes, the same on all ranks, which share them: batch by batch, or by parts of each with
  /// split_batches. With already_sharded, batches of this rank's own. A source that all ranks know to be as long costs
  /// nothing; else they agree on each round. Errors: throws std::invalid_argument for an option that a source cannot
  /// follow, and on all ranks where their sources turn out to differ in length.
  template <typename Batch>
  PreparedLoader<Batch> prepare(BatchSource<Batch>& source, LoaderOptions options = {}) {
    return PreparedLoader<Batch>(source, options, state(), axis());
  }

  /// Several objects in one call, prepared in that order; answers what prepare() does of each.
  ///   auto [ddp, optimizer, loader] = accelerator.prepare(model, sgd, map_loader(samples, fetch));
  template <typename First, typename Second, typename... Others>
  requires(Preparable<Second>&&...&& Preparable<Others>) auto prepare(First&& first, Second&& second,
                                                                      Others&&... others) {
    using Prepared =
        std::tuple<decltype(prepare(std::forward<First>(first))), decltype(prepare(std::forward<Second>(second))),
                   decltype(prepare(std::forward<Others>(others)))...>;
    return Prepared{prepare(std::forward<First>(first)), prepare(std::forward<Second>(second)),
                    prepare(std::forward<Others>(others))...};
  }

  /// The scope of a forward whose operators run in the type of mixed_precision; without one it changes nothing.
  [[nodiscard]] std::unique_ptr<AutocastScope> autocast() const;
  at::Device device() const { return state().options().device; }
  /// Seeds torch's generators; with device_specific each rank's with seed + rank.
  void set_seed(std::uint64_t seed, bool device_specific = false) const;

  /// One micro-step: entered before the forward, it decides whether this one is a boundary and, off one, keeps the
  /// models named (modules or what prepare() answered) from reducing. All models that are trained belong in one scope.
  template <typename... Models>
  [[nodiscard]] AccumulateScope accumulate(Models&... models) {
    return accumulate_models({index_of(models)...});
  }
  /// The models do not reduce gradients of forwards that ran while it lives, even if the backward runs later.
  template <typename... Models>
  [[nodiscard]] NoSyncScope no_sync(Models&... models) {
    return no_sync_models({index_of(models)...});
  }
  /// The backward inside reduces, also of a forward that ran under no_sync().
  template <typename Model>
  [[nodiscard]] TriggerSyncScope trigger_sync_in_backward(Model& model) {
    return trigger_sync_model(index_of(model));
  }
  /// In every prepared loader whose pass begins while it lives, a rank with fewer batches joins the others with empty
  /// ones: its loop's body runs as often as theirs, and makes the same calls. `even_batches` overrides the loaders'
  /// own; where batches are even there is nothing to join. Works on every backend.
  [[nodiscard]] JoinScope join_uneven_inputs(std::optional<bool> even_batches = std::nullopt);

  /// Adds the gradient of loss / N, scaled with fp16, and reduces the models that it reached and that are not kept from
  /// it. On an empty batch the loss is not looked at and may be undefined: this rank contributes zero. Collective on a
  /// boundary, and while a rank has no sample: the axis. A backward of the caller's own, of a loss that the caller
  /// divides, counts as well: the clip or the step on the boundary then reduces what it left.
  void backward(const at::Tensor& loss, BackwardOptions options = {});

  /// True on a boundary, and until accumulate() is first entered. Setting it holds until the next micro-step.
  bool sync_gradients() const { return state().sync_gradients(); }
  void set_sync_gradients(bool sync);
  std::int64_t gradient_accumulation_steps() const { return state().num_steps(); }
  /// Errors: throws std::invalid_argument below 1.
  void set_gradient_accumulation_steps(std::int64_t steps) { state().set_num_steps(steps); }

  /// Clip whatever the gradients hold now: ask sync_gradients first. With fp16 the optimizers that hold any of
  /// `parameters` are unscaled before, and a second unscaling with no optimizer's step in between throws
  /// std::logic_error. The norm before clipping, shape [].
  at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type = 2.0);
  void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value);
  /// Divides the gradients of one optimizer, or of all, by the scale; nothing without fp16.
  void unscale_gradients(AcceleratedOptimizer* optimizer = nullptr);
  /// Any optimizer's last step on a boundary was skipped.
  bool optimizer_step_was_skipped() const;

  /// All ranks' tensors one after another along dim 0; a number becomes [ranks]. On an empty batch a rank contributes
  /// zeros in the others' shape, here and in reduce(). Other uneven batches, as even_batches = false deals them, are to
  /// be padded first: pad_across_processes(). Collective: the axis, equal shapes. Errors: throws std::invalid_argument
  /// that names the shapes where they differ.
  at::Tensor gather(const at::Tensor& tensor);
  /// gather(), without the samples that even_batches repeated in the last batch.
  at::Tensor gather_for_metrics(const at::Tensor& tensor);
  /// The tensor, made as long along `dim` as the longest of any rank, with `pad_index` behind what was there, or with
  /// pad_first before it. A tensor that is as long already, or has no such dim, comes back as it is; a negative dim
  /// counts from the last. Collective: the axis, as many dims on every rank.
  at::Tensor pad_across_processes(const at::Tensor& tensor, std::int64_t dim = 0, double pad_index = 0.0,
                                  bool pad_first = false);
  /// Elementwise over the ranks; a new tensor. Collective: the axis.
  at::Tensor reduce(const at::Tensor& tensor, Reduction reduction = Reduction::sum, double scale = 1.0);
  void wait_for_everyone();
  std::int64_t num_processes() const;
  std::int64_t process_index() const;
  bool is_main_process() const { return process_index() == 0; }

  /// Writes everything that was prepared into a folder, on a disk that all ranks see. The folder is put in place by one
  /// rename once every rank has written its part: a save that fails or is killed leaves the last one whole. Collective:
  /// the axis. Errors: disk.
  Result<void> save_state(const std::filesystem::path& folder, SaveStateOptions options = {});
  /// Reads it back into what was prepared in the same order; there are no gradients afterwards but those that were
  /// saved. N stays what this program has set: of the accumulation only the step is read. Everything is checked on
  /// every rank first: after an error nothing has changed. Collective: the axis. Errors: disk, protocol (what does not
  /// fit).
  Result<void> load_state(const std::filesystem::path& folder);
  /// Forgets what was prepared and sets the step to 0. What prepare() answered is gone then.
  void free_memory();

  /// Runs `body` with ever smaller batches until memory suffices; N follows, so that batch times N stays what it was
  /// (see memory_search.h). Before each attempt free_memory() is called and N is set.
  BatchAttempt find_executable_batch_size(std::int64_t starting_batch_size,
                                          const std::function<void(const BatchAttempt&)>& body);

  /// What the last accumulate() decided.
  const MicroPlan& micro_plan() const;
  GradScaler* scaler();  ///< null without fp16
  GradientState& state();
  const GradientState& state() const;
  Communicator& axis();

 private:
  template <typename Model>
  std::size_t index_of(Model& model) {
    if constexpr (std::derived_from<Model, GradSync>) {
      return index_of_sync(model);
    } else if constexpr (std::derived_from<Model, torch::nn::Module>) {
      return index_of_module(model);
    } else {
      return index_of_module(*model);
    }
  }
  std::size_t index_of_sync(const GradSync& sync) const;
  std::size_t index_of_module(const torch::nn::Module& module) const;
  AccumulateScope accumulate_models(std::vector<std::size_t> models);
  NoSyncScope no_sync_models(std::vector<std::size_t> models);
  TriggerSyncScope trigger_sync_model(std::size_t model);

  std::unique_ptr<AcceleratorImpl> impl_;
};

/// As the original's AcceleratorState and GradientState print themselves.
std::ostream& operator<<(std::ostream& out, const Accelerator& accelerator);

}  // namespace accrue::accelerate
