// SPDX-License-Identifier: Apache-2.0
// The accumulation of llm-pytorch (llm.engine.accumulation), for any LibTorch program.
//
//   auto [optimizer, schedule] = accrue::llm::initialize(&ddp, adam, decay, 4);
//   for (auto& batch : batches) {
//     optimizer->zero_grad();                       // does nothing within a window
//     optimizer->backward(loss_of(model, batch));   // loss / 4
//     optimizer->step();                            // every 4th time
//     schedule->step();                             // the inner one, every 4th time
//   }
//
// As in the original: the loss is always divided by N; a window continues across ends of epochs; the remainder at the
// end of the run is lost; after one backward too many between two steps, no step ever comes. Unlike it: no_sync covers
// the whole micro-step, also under mixed precision, so gradients are reduced once per window; the position in a window
// is saved; N below 1 is refused (in the original 0 divides by zero, and a negative N never steps).
//
// Gradients accumulate in the type of .grad, which autograd takes from the parameter. Without `model`, sums of bfloat16
// and float16 gradients are therefore rounded in every micro-step. A DistributedDataParallel sums them in float32; on
// an axis of one rank, single_communicator(), that costs no communication. Thread: the training thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "accrue/accumulation/accumulating.h"

namespace accrue::llm {

/// Source: llm.engine.accumulation.GradientAccumulationOptimizer.
class GradientAccumulationOptimizer final : public AccumulatingOptimizer {
 public:
  /// `model`, if given, reduces the gradients and must outlive this. Errors: throws std::invalid_argument for N < 1.
  GradientAccumulationOptimizer(const AnyOptimizer& optimizer, GradSync* model, const StepsOrWindow& accumulation_steps,
                                const Replays& replay = {});

  /// Whether no gradient is pending: before a window's first backward and again after its step. It does not mean that
  /// this micro-step is the last of its window.
  bool accumulation_boundary() const { return window().open_micro_steps() == 0; }

 protected:
  const char* name() const override { return "GradientAccumulationOptimizer"; }
};

/// Scheduler that counts its own calls: the inner scheduler steps at every N-th, independent of the optimizer.
/// Source: llm.engine.accumulation.GradientAccumulationLRScheduler.
class GradientAccumulationLRScheduler final : public AccumulatingScheduler {
 public:
  /// `frozen_after_load`, off unless an optimizer is named, reproduces the original's Replay::scheduler_state: its
  /// saved scheduler contained a copy of the optimizer, and moved that copy after loading. The rate of the live
  /// optimizer, named here, then stays constant after load_state_dict(), while get_last_lr() changes. Errors: throws
  /// std::invalid_argument for N < 1.
  GradientAccumulationLRScheduler(const AnyScheduler& scheduler, const StepsOrWindow& accumulation_steps,
                                  torch::optim::Optimizer* frozen_after_load = nullptr);

  void load_state_dict(const StateDict& state) override;

 protected:
  void step_inner(std::optional<std::int64_t> epoch) override;
  const char* name() const override { return "GradientAccumulationLRScheduler"; }

 private:
  torch::optim::Optimizer* frozen_;
  std::optional<std::vector<double>> detached_;  ///< rates of the copy, if there is one
};

/// Makes both wrappers over one window, also for N = 1. `replay`: narrow_no_sync, scheduler_state. Errors: throws
/// std::invalid_argument for N < 1. Source: llm.engine.accumulation.initialize.
using Initialized =
    std::pair<std::shared_ptr<GradientAccumulationOptimizer>, std::shared_ptr<GradientAccumulationLRScheduler>>;
Initialized initialize(GradSync* model, const AnyOptimizer& optimizer, const AnyScheduler& scheduler,
                       std::int64_t accumulation_steps = 1, const Replays& replay = {});

/// Whether no gradient of a window is pending; always true for an optimizer that does not accumulate.
bool accumulation_boundary(const BaseOptimizer& optimizer);

/// N = global / (local x world). Errors: throws std::invalid_argument if that is not an integer, or if a number is
/// below 1. Source: llm-pytorch's helper of the same name.
std::int64_t gradient_accumulation_steps(std::int64_t global_batch, std::int64_t local_batch, std::int64_t world);

/// The rate rises as (position + 1) / (warmup + 1), reaches the optimizer's own at `warmup`, and falls linearly to zero
/// at `total`. Source: llm-pytorch's LinearWarmupLR. Errors: throws std::invalid_argument unless 0 <= warmup < total.
class LinearWarmupLR final : public LambdaLR {
 public:
  LinearWarmupLR(torch::optim::Optimizer& optimizer, std::int64_t warmup, std::int64_t total);
};

}  // namespace accrue::llm
