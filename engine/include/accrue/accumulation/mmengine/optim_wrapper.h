// SPDX-License-Identifier: Apache-2.0
// OptimWrapper: MMEngine's accumulation. The wrapper receives the length of a window and, through
// initialize_count_status(), the position and length of the run; update_params() then does everything:
//
//   accrue::mmengine::OptimWrapper optim_wrapper(optimizer, {.accumulative_counts = 4});
//   optim_wrapper.initialize_count_status(*model, 0, max_iters);
//   for (auto& batch : batches) {
//     at::Tensor loss;
//     { auto context = optim_wrapper.optim_context(*model); loss = loss_of(*model, batch); }
//     optim_wrapper.update_params(loss);
//   }
//
// Windows run across the ends of epochs. Only the last window of the whole run may be short, and its losses are divided
// by its own size. The window of its AccumulationDriver counts, not the wrapper. A micro-step that does not reduce is
// covered in its forward (optim_context) and in its backward, whether the context is still open then or not. Gradients
// accumulate in the type of .grad, which autograd takes from the parameter, so sums of bfloat16 and float16 gradients
// are rounded in every micro-step. If `sync` is a DistributedDataParallel they are float32; on an axis of one rank,
// single_communicator(), that costs no communication. Thread: the training thread. Source: the behaviour of
// mmengine.optim.OptimWrapper.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accrue/accumulation/accumulation_driver.h"
#include "accrue/accumulation/any_optimizer.h"
#include "accrue/accumulation/mmengine/clip_grad.h"
#include "accrue/accumulation/mmengine/optim_context.h"

namespace torch::nn {
class Module;
}

namespace accrue::mmengine {

/// Receives warnings: one sentence per call, without a line end.
using WarningSink = std::function<void(const std::string&)>;

struct OptimWrapperOptions {
  std::int64_t accumulative_counts = 1;  ///< N, micro-steps per update
  std::optional<ClipGrad> clip_grad;     ///< applied inside step(), so once per window
  GradSync* sync = nullptr;              ///< data parallelism, if there is any; must outlive the wrapper
  WarningSink warn;                      ///< default: standard error
  std::vector<Replay> replay;            ///< defects of the original, reproduced on purpose; see ColossalAIOptimWrapper
};

/// max_counts of a run of unknown length.
inline constexpr std::int64_t unset_counts = -1;

/// MMEngine's step_kwargs and zero_kwargs.
struct UpdateSettings {
  Closure closure;          ///< for step()
  bool set_to_none = true;  ///< for zero_grad()
};

/// Its state is the optimizer's own. Counts are not saved: call initialize_count_status() after a resume.
class OptimWrapper : public OptimizerWrapper {
 public:
  /// Errors: throws std::invalid_argument for accumulative_counts below 1 or above a million, a clip_grad without a
  /// bound, or a defect that this system does not have.
  explicit OptimWrapper(const AnyOptimizer& optimizer, OptimWrapperOptions options = {});

  /// Sets the position `init_counts` of `max_counts` micro-iterations (of the whole run, not of an epoch; unset_counts
  /// for an open end). Warns about gradients that a resume inside a window has lost, and about BatchNorm with N above
  /// 1. Errors: throws std::invalid_argument for a negative count.
  void initialize_count_status(const torch::nn::Module& model, std::int64_t init_counts, std::int64_t max_counts);

  /// Returns loss / N, or loss / size in the last, short window of the run. Call it before backward().
  /// Errors: throws std::logic_error if the run is over and there is no such window.
  at::Tensor scale_loss(const at::Tensor& loss) const;
  /// Whether the next backward reduces. Call it before backward().
  bool should_sync() const;
  /// Whether an update is due. Call it after backward().
  bool should_update() const;

  /// Does scale_loss(), backward() and, if an update is due, step() and zero_grad() with `settings`. Returns the
  /// outcome of the update, or `accumulated`. Collective on a boundary: the axis of `sync`.
  StepOutcome update_params(const at::Tensor& loss, const UpdateSettings& settings = {});

  /// Neither scaled nor gated, like step() and zero_grad(). Reduces if should_sync() is true.
  /// Errors: throws std::logic_error if it must reduce while a no_sync scope is open.
  void backward(const at::Tensor& loss, BackwardOptions options = {}) override;
  /// Clips, then steps. First reduces remaining gradients, so that ranks stay equal wherever a loop steps.
  StepOutcome step(const Closure& closure = {}) override;
  /// Removes or zeroes the gradients.
  void zero_grad(bool set_to_none = true) override;

  /// Opens the scope of one forward. It is empty if should_sync(), or if nothing reduces.
  virtual OptimContext optim_context(torch::nn::Module& model);

  /// Completed micro-iterations, including lost ones.
  std::int64_t inner_count() const { return window()->position().counter(); }
  std::int64_t accumulative_counts() const { return window()->shape().steps; }
  std::int64_t max_counts() const { return window()->shape().max_iters.value_or(unset_counts); }
  /// Size of the run's last window if it is short, else 0; unset_counts if max_counts is.
  std::int64_t remainder_counts() const;

  /// Returns {"lr": one rate per parameter group}, and with several groups {"base_lr": that of base_param_settings()}.
  std::map<std::string, std::vector<double>> get_lr() const;
  /// Returns {"momentum": one per parameter group}, and "base_momentum" likewise: the first beta of the Adams, the
  /// momentum of SGD and RMSprop, else 0.
  std::map<std::string, std::vector<double>> get_momentum() const;
  /// Returns the optimizer's default options, before per-group overrides, so that one rate can represent several
  /// groups. Its rate has changed by the same factor as the first group's since the wrapper was made. Null for an
  /// optimizer that had one group then.
  std::unique_ptr<torch::optim::OptimizerOptions> base_param_settings() const;
  /// Norm of the gradients before the last step() clipped them; none before that, or with clipping by value.
  std::optional<double> grad_norm() const { return grad_norm_; }

  /// Prints like MMEngine's.
  std::string text() const override {
    return "Type: OptimWrapper\n_accumulative_counts: " + std::to_string(accumulative_counts()) + "\noptimizer:\n" +
           inner().text();
  }

  /// The only counter; a ParamSchedulerHook shares it.
  const SharedWindow& window() const { return driver_.shared_window(); }

 protected:
  bool clips() const { return options_.clip_grad.has_value(); }
  void clip();
  /// Whether the next micro-step's forward and backward may reduce.
  virtual bool reduces() const { return should_sync(); }
  /// Called by step() once the gradients are reduced over all ranks.
  virtual StepOutcome update(const Closure& closure);
  /// Runs loss.backward() as the inner optimizer requires.
  virtual void differentiate(const at::Tensor& loss, BackwardOptions options) { inner().backward(loss, options); }
  AccumulationDriver& driver() { return driver_; }

 private:
  OptimWrapperOptions options_;
  AccumulationDriver driver_;
  std::optional<double> first_rate_;  ///< of the first of several parameter groups, when the wrapper was made
  std::optional<double> grad_norm_;
};

/// A micro-step like MMEngine's train_step: forward under optim_context, then update_params.
struct TrainStep {
  at::Tensor loss;  ///< as forward returned it, not divided
  StepOutcome outcome = StepOutcome::accumulated;
};
template <typename Forward>
TrainStep train_step(OptimWrapper& optim_wrapper, torch::nn::Module& model, Forward&& forward) {
  TrainStep result;
  {
    const OptimContext context = optim_wrapper.optim_context(model);
    result.loss = forward();
  }
  result.outcome = optim_wrapper.update_params(result.loss);
  return result;
}

}  // namespace accrue::mmengine
