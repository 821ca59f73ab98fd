// SPDX-License-Identifier: Apache-2.0
// Accelerator: Hugging Face Accelerate's gradient accumulation for any LibTorch program. It is an object: two of them
// in one process are independent, and an evaluation cannot advance a training's counter.
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
// Source: Hugging Face Accelerate 1.15. Thread: the training thread. Its arguments (modules, optimizers, the axis) must
// outlive it; objects that it returns end with it.
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
#include "accrue/run/base/result.h"

namespace accrue::accelerate {

enum class Reduction { none, sum, mean };

/// Additional contents of save_state(), beyond Accelerate's own (models, optimizers, schedulers, scaler, step, RNG).
struct SaveStateOptions {
  bool gradients = false;  ///< those of the open window, of every rank: a resume inside it loses nothing
  bool loaders = false;    ///< epoch and position of every loader, so that the next pass continues at the same place
};

/// Whether T is a torch::nn::ModuleHolder.
template <typename T>
concept HoldsModule = requires(T& holder) {
  requires std::derived_from<std::remove_cvref_t<decltype(*holder.ptr())>, torch::nn::Module>;
};

/// Objects that Accelerator::prepare() accepts.
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
  /// `axis`: the data axis; single_communicator() for a program with one rank. Errors: throws std::invalid_argument as
  /// resolve_plugin() does, and for ways to reduce that could not give the window's gradients.
  Accelerator(AcceleratorOptions options, Communicator& axis);
  ~Accelerator();
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  /// Wraps a module and moves it to device(); keep calling the module itself. Collective: the axis.
  DistributedDataParallel& prepare(torch::nn::Module& module);
  /// Prepares the module of a module holder.
  template <HoldsModule Holder>
  DistributedDataParallel& prepare(Holder& holder) {
    return prepare(*holder.ptr());
  }
  /// Errors: throws std::invalid_argument for an optimizer that was prepared before.
  AcceleratedOptimizer& prepare(torch::optim::Optimizer& optimizer);
  AcceleratedOptimizer& prepare(std::shared_ptr<BaseOptimizer> optimizer);
  /// `optimizers`: those whose skipped steps hold the schedule; empty means all prepared ones.
  AcceleratedScheduler& prepare(std::shared_ptr<BaseScheduler> scheduler,
                                std::vector<const AcceleratedOptimizer*> optimizers = {});
  /// Prepares a scheduler of LibTorch's own, with the optimizer that it was made for.
  AcceleratedScheduler& prepare(torch::optim::LRScheduler& scheduler, AcceleratedOptimizer& optimizer,
                                std::optional<std::int64_t> total_steps = std::nullopt);
  /// Prepares map-style data, sharded over the ranks.
  template <typename Batch>
  PreparedLoader<Batch> prepare(MapLoader<Batch> loader) {
    return PreparedLoader<Batch>(std::move(loader), state(), axis());
  }
  /// Prepares batches of a source that is the same on all ranks. The ranks share them batch by batch, or with
  /// split_batches by parts of each. With already_sharded the batches are this rank's own. If all ranks know the same
  /// length, this costs nothing; otherwise they agree on each round. Errors: throws std::invalid_argument for an option
  /// that a source cannot follow, and on all ranks if their sources turn out to differ in length.
  template <typename Batch>
  PreparedLoader<Batch> prepare(BatchSource<Batch>& source, LoaderOptions options = {}) {
    return PreparedLoader<Batch>(source, options, state(), axis());
  }

  /// Prepares several objects in one call, in order; returns the results of the single calls.
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

  /// Opens a scope for a forward whose operators run in the type of mixed_precision; without one it has no effect.
  [[nodiscard]] std::unique_ptr<AutocastScope> autocast() const;
  at::Device device() const { return state().options().device; }
  /// Seeds torch's generators; with device_specific each rank's with seed + rank.
  void set_seed(std::uint64_t seed, bool device_specific = false) const;

  /// Opens the scope of one micro-step; enter it before the forward. It decides whether the micro-step is a boundary;
  /// if not, the named models (modules or results of prepare()) do not reduce. All trained models belong in one scope.
  template <typename... Models>
  [[nodiscard]] AccumulateScope accumulate(Models&... models) {
    return accumulate_models({index_of(models)...});
  }
  /// Opens a scope for forwards: the models do not reduce their gradients, even if the backward runs later.
  template <typename... Models>
  [[nodiscard]] NoSyncScope no_sync(Models&... models) {
    return no_sync_models({index_of(models)...});
  }
  /// Opens a scope in which the backward reduces, even for a forward under no_sync().
  template <typename Model>
  [[nodiscard]] TriggerSyncScope trigger_sync_in_backward(Model& model) {
    return trigger_sync_model(index_of(model));
  }
  /// While the scope lives, a rank with fewer batches in a prepared loader's pass joins the others with empty batches:
  /// its loop runs as often as theirs, with the same calls. `even_batches` overrides the loaders' own setting; even
  /// batches need no join. Works on every backend.
  [[nodiscard]] JoinScope join_uneven_inputs(std::optional<bool> even_batches = std::nullopt);

  /// Adds the gradient of loss / N (scaled with fp16), and reduces the reached models unless a scope prevents it. On an
  /// empty batch the loss is ignored and may be undefined: this rank contributes zero. Collective on a boundary, and
  /// while a rank has no sample: the axis. A caller's own backward, with a loss that the caller divides, counts too:
  /// the clip or step on the boundary then reduces its gradients.
  void backward(const at::Tensor& loss, BackwardOptions options = {});

  /// True on a boundary, and until accumulate() is first entered. A set value lasts until the next micro-step.
  bool sync_gradients() const { return state().sync_gradients(); }
  void set_sync_gradients(bool sync);
  std::int64_t gradient_accumulation_steps() const { return state().num_steps(); }
  /// Errors: throws std::invalid_argument below 1.
  void set_gradient_accumulation_steps(std::int64_t steps) { state().set_num_steps(steps); }

  /// Clip the current gradients: check sync_gradients first. With fp16 the optimizers that hold any of `parameters` are
  /// unscaled before; a second unscaling without a step of the optimizer in between throws std::logic_error. Returns
  /// the norm before clipping, shape [].
  at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type = 2.0);
  void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value);
  /// Divides the gradients of one optimizer, or of all, by the scale; no effect without fp16.
  void unscale_gradients(AcceleratedOptimizer* optimizer = nullptr);
  /// Whether any optimizer's last step on a boundary was skipped.
  bool optimizer_step_was_skipped() const;

  /// Concatenates all ranks' tensors along dim 0; a number becomes [ranks]. On an empty batch a rank contributes zeros
  /// in the others' shape, here and in reduce(). Pad other uneven batches (even_batches = false) first:
  /// pad_across_processes(). Collective: the axis, equal shapes. Errors: throws std::invalid_argument that names
  /// differing shapes.
  at::Tensor gather(const at::Tensor& tensor);
  /// Does gather(), without the samples that even_batches repeated in the last batch.
  at::Tensor gather_for_metrics(const at::Tensor& tensor);
  /// Pads the tensor along `dim` to the greatest length of any rank, with `pad_index` at the end, or with pad_first at
  /// the start. A tensor that is long enough, or lacks the dim, is returned unchanged; a negative dim counts from the
  /// last. Collective: the axis, with equal numbers of dims.
  at::Tensor pad_across_processes(const at::Tensor& tensor, std::int64_t dim = 0, double pad_index = 0.0,
                                  bool pad_first = false);
  /// Reduces elementwise over the ranks into a new tensor. Collective: the axis.
  at::Tensor reduce(const at::Tensor& tensor, Reduction reduction = Reduction::sum, double scale = 1.0);
  void wait_for_everyone();
  std::int64_t num_processes() const;
  std::int64_t process_index() const;
  bool is_main_process() const { return process_index() == 0; }

  /// Writes all prepared objects into a folder on a disk that all ranks share. One rename replaces the folder after
  /// every rank has written its part: a save that fails or is killed keeps the previous one whole. Collective: the
  /// axis. Errors: disk.
  Result<void> save_state(const std::filesystem::path& folder, SaveStateOptions options = {});
  /// Reads the state into objects that were prepared in the same order. Afterwards there are only saved gradients. N
  /// keeps this program's value: of the accumulation only the step is read. Everything is checked on every rank first,
  /// so an error changes nothing. Collective: the axis. Errors: disk, protocol (a mismatch).
  Result<void> load_state(const std::filesystem::path& folder);
  /// Forgets all prepared objects and sets the step to 0. Results of prepare() become invalid.
  void free_memory();

  /// Runs `body` with decreasing batches until memory suffices. N changes so that batch times N is constant (see
  /// memory_search.h). Before each attempt it calls free_memory() and sets N.
  BatchAttempt find_executable_batch_size(std::int64_t starting_batch_size,
                                          const std::function<void(const BatchAttempt&)>& body);

  /// Decision of the last accumulate().
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

/// Prints like the original's AcceleratorState and GradientState.
std::ostream& operator<<(std::ostream& out, const Accelerator& accelerator);

}  // namespace accrue::accelerate
