// SPDX-License-Identifier: Apache-2.0
// The accumulation of Colossal-AI (colossalai.utils.gradient_accumulation), for any LibTorch program.
//
//   auto [optimizer, loader, handlers, schedule] =
//       accrue::colossalai::accumulate_gradient(&ddp, sgd, batches, 4, {}, decay);
//   for (auto& batch : *loader) {                   // whole windows; the tail of the epoch is dropped
//     optimizer->zero_grad();
//     optimizer->backward(loss_of(model, batch));   // loss / 4
//     optimizer->clip_grad_norm(parameters, 1.0);   // every 4th time
//     optimizer->step();
//     schedule->step();
//   }
//
// As in the original: the divisor is N, the tail is never seen, the next step absorbs a backward too many, schedules
// are sized in updates (compute_effective_steps_per_epoch). Unlike it: all four share one window, so they cannot drift
// apart; gradients are reduced once per window; N below 1 is refused.
//
// Gradients accumulate in the type of .grad, which autograd takes from the parameter. Without `model`, sums of bfloat16
// and float16 gradients are therefore rounded in every micro-step. A DistributedDataParallel sums them in float32; on
// an axis of one rank, single_communicator(), that costs no communication. Thread: the training thread.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accrue/accumulation/accumulating.h"
#include "accrue/accumulation/colossalai_loader.h"
#include "accrue/accumulation/gradient_handlers.h"

namespace accrue::colossalai {

/// Source: colossalai.utils.gradient_accumulation.GradAccumOptimizer.
class GradAccumOptimizer final : public AccumulatingOptimizer {
 public:
  /// `model`, if given, reduces the gradients and must outlive this. Errors: throws std::invalid_argument for N < 1.
  GradAccumOptimizer(const AnyOptimizer& optim, const StepsOrWindow& accumulate_size, GradSync* model = nullptr,
                     const Replays& replay = {});

  /// Counts a micro-step whose gradient comes from elsewhere, already scaled: no division. Shapes: tensor and grad
  /// alike.
  void backward_by_grad(const at::Tensor& tensor, const at::Tensor& grad);
  /// Clips the window's gradients if its step is due and max_norm > 0, and returns the norm before; else returns none.
  /// Replay::clip_partial_sums reproduces the original since September 2023: the running sum is clipped in every
  /// micro-step, and a max_norm of 0 zeroes it.
  std::optional<double> clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm);
  /// Declares the batches of this rank's loader per epoch. The ranks compare them like N, because windows continue over
  /// the ends of epochs and would meet those of other epochs.
  void declare_epoch(std::int64_t batches);

 protected:
  const char* name() const override { return "GradAccumOptimizer"; }
};

/// Scheduler that counts its own calls: the inner scheduler steps at every N-th.
/// Source: colossalai.utils.gradient_accumulation.GradAccumLrSchedulerByStep.
class GradAccumLrSchedulerByStep final : public AccumulatingScheduler {
 public:
  /// Errors: throws std::invalid_argument for N < 1.
  GradAccumLrSchedulerByStep(const AnyScheduler& lr_scheduler, const StepsOrWindow& accumulate_size);

  /// Updates of an epoch, L / N rounded down, for sizing schedules. Errors: throws std::invalid_argument if the length
  /// is missing or N < 1.
  static std::int64_t compute_effective_steps_per_epoch(std::int64_t batches_per_epoch, std::int64_t accumulate_size);
  template <typename Batch>
  static std::int64_t compute_effective_steps_per_epoch(const BatchSource<Batch>& dataloader,
                                                        std::int64_t accumulate_size) {
    return total_windows(epoch_shape(dataloader.length(), accumulate_size)).updates;
  }

 protected:
  const char* name() const override { return "GradAccumLrSchedulerByStep"; }
};

/// A handler that acts once per window. With a shared window it acts once when the optimizer's step is due, so call it
/// before the step; alone it counts its calls and acts at every N-th. Source:
/// colossalai.utils.gradient_accumulation.GradAccumGradientHandler.
class GradAccumGradientHandler final {
 public:
  /// Errors: throws std::invalid_argument for N < 1 or an empty handler.
  GradAccumGradientHandler(std::shared_ptr<BaseGradientHandler> grad_handler, const StepsOrWindow& accumulate_size);

  /// Errors: throws std::logic_error with a shared window if the step was taken without this handler.
  void handle_gradient();
  /// Returns "GradAccumGradientHandler: once per window of 4", and the wrapped object.
  std::string text() const;

 private:
  std::shared_ptr<BaseGradientHandler> inner_;
  SharedWindow window_;
  bool counts_;                   ///< the window belongs to this handler alone
  std::int64_t handled_at_ = -1;  ///< micro-step of the window reduced last, so that no sum is taken twice
};

std::ostream& operator<<(std::ostream& out, const GradAccumGradientHandler& handler);

using GradientHandlers = std::vector<std::shared_ptr<BaseGradientHandler>>;
using GradAccumHandlers = std::vector<std::shared_ptr<GradAccumGradientHandler>>;

template <typename Batch>
struct Accumulated {
  std::shared_ptr<GradAccumOptimizer> optimizer;
  std::shared_ptr<GradAccumDataloader<Batch>> dataloader;
  GradAccumHandlers gradient_handlers;                       ///< empty if none were given
  std::shared_ptr<GradAccumLrSchedulerByStep> lr_scheduler;  ///< empty if none was given
};

GradAccumHandlers wrap_handlers(const GradientHandlers& handlers, const SharedWindow& window);

/// Makes the four wrappers over one window, also for N = 1. `model` may be null if handlers reduce, or nothing does.
/// `dataloader` and references must outlive the result. `replay`: clip_partial_sums, drain_early, narrow_no_sync.
/// Errors: throws std::invalid_argument for N < 1, a loader without a length, an empty handler; and in backward() on
/// all ranks, at the first reduction of `model`, if they differ in N or in their loaders' batches. Source:
/// colossalai.utils.gradient_accumulation.accumulate_gradient.
template <typename Batch>
Accumulated<Batch> accumulate_gradient(GradSync* model, const AnyOptimizer& optimizer, BatchSource<Batch>& dataloader,
                                       std::int64_t accumulate_size, const GradientHandlers& gradient_handlers = {},
                                       const std::shared_ptr<BaseScheduler>& lr_scheduler = nullptr,
                                       const Replays& replay = {}) {
  const SharedWindow window = make_call_window(Dialect::colossalai, accumulate_size, "accumulate_gradient", replay);
  Accumulated<Batch> made;
  made.optimizer = std::make_shared<GradAccumOptimizer>(optimizer, window, model);
  made.dataloader = std::make_shared<GradAccumDataloader<Batch>>(dataloader, accumulate_size, replay);
  made.optimizer->declare_epoch(*made.dataloader->length());
  made.gradient_handlers = wrap_handlers(gradient_handlers, window);
  if (lr_scheduler) made.lr_scheduler = std::make_shared<GradAccumLrSchedulerByStep>(lr_scheduler, window);
  return made;
}

/// Order of one step: handlers reduce, then the gradients are clipped, then the optimizer steps. Each does nothing
/// inside a window, so call step() after every backward. Source: colossalai.engine.Engine.
class Engine {
 public:
  Engine(std::shared_ptr<GradAccumOptimizer> optimizer, GradAccumHandlers gradient_handlers = {},
         double clip_grad_norm = 0.0);

  void zero_grad(bool set_to_none = true) { optimizer_->zero_grad(set_to_none); }
  void backward(const at::Tensor& loss, BackwardOptions options = {}) { optimizer_->backward(loss, options); }
  StepOutcome step();

 private:
  std::shared_ptr<GradAccumOptimizer> optimizer_;
  GradAccumHandlers gradient_handlers_;
  double clip_grad_norm_;
};

}  // namespace accrue::colossalai
