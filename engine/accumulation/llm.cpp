// SPDX-License-Identifier: Apache-2.0
// The names of llm-pytorch over one window. The original's two independent counters become one window with two halves:
// backwards count its micro-steps, calls of the scheduler count its calls. So every call pattern gives the original's
// result. Source: llm.engine.accumulation; llm.optimizers.scheduler for LinearWarmupLR.
#include "accrue/accumulation/llm.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace accrue::llm {
namespace {

/// (p + 1) / (w + 1) during the warm-up w, so that its first update has a rate above 0 and position w has the peak;
/// then (T - p) / (T - w), which is 0 from the total T on.
LambdaLR::Factor linear_warmup(std::int64_t warmup, std::int64_t total) {
  if (warmup < 0 || total <= warmup)
    throw std::invalid_argument("LinearWarmupLR: warm-up of " + std::to_string(warmup) + " steps in a total of " +
                                std::to_string(total) + "; it is at least 0 and below the total");
  return [warmup, total](std::int64_t position) {
    const auto ratio = [](std::int64_t a, std::int64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
    if (position < warmup) return ratio(position + 1, warmup + 1);
    return std::max(ratio(total - position, total - warmup), 0.0);
  };
}

}  // namespace

GradientAccumulationOptimizer::GradientAccumulationOptimizer(const AnyOptimizer& optimizer, GradSync* model,
                                                             const StepsOrWindow& accumulation_steps,
                                                             const Replays& replay)
    : AccumulatingOptimizer(optimizer, model,
                            accumulation_steps.window(Dialect::llm, "GradientAccumulationOptimizer", replay)) {}

GradientAccumulationLRScheduler::GradientAccumulationLRScheduler(const AnyScheduler& scheduler,
                                                                 const StepsOrWindow& accumulation_steps,
                                                                 torch::optim::Optimizer* frozen_after_load)
    : AccumulatingScheduler(scheduler, accumulation_steps.window(Dialect::llm, "GradientAccumulationLRScheduler")),
      frozen_(frozen_after_load) {}

void GradientAccumulationLRScheduler::load_state_dict(const StateDict& state) {
  if (frozen_ == nullptr) return AccumulatingScheduler::load_state_dict(state);
  const auto live = learning_rates(*frozen_);
  AccumulatingScheduler::load_state_dict(state);
  detached_ = learning_rates(*frozen_);
  set_learning_rates(*frozen_, live);
}

void GradientAccumulationLRScheduler::step_inner(std::optional<std::int64_t> epoch) {
  if (!detached_) return inner().step(epoch);
  // The inner scheduler moves the rates of a copy; as there is only one optimizer here, it gets the copy's rates
  // meanwhile.
  const auto live = learning_rates(*frozen_);
  set_learning_rates(*frozen_, *detached_);
  inner().step(epoch);
  detached_ = learning_rates(*frozen_);
  set_learning_rates(*frozen_, live);
}

Initialized initialize(GradSync* model, const AnyOptimizer& optimizer, const AnyScheduler& scheduler,
                       std::int64_t accumulation_steps, const Replays& replay) {
  const SharedWindow window = make_call_window(Dialect::llm, accumulation_steps, "llm::initialize", replay);
  const bool freezes = window->shape().knobs.replays(Replay::scheduler_state);
  torch::optim::Optimizer* frozen = freezes ? &optimizer.shared()->torch() : nullptr;
  return {std::make_shared<GradientAccumulationOptimizer>(optimizer, model, window),
          std::make_shared<GradientAccumulationLRScheduler>(scheduler, window, frozen)};
}

bool accumulation_boundary(const BaseOptimizer& optimizer) {
  const auto* accumulating = dynamic_cast<const AccumulatingOptimizer*>(&optimizer);
  return accumulating == nullptr || accumulating->window().open_micro_steps() == 0;
}

std::int64_t gradient_accumulation_steps(std::int64_t global_batch, std::int64_t local_batch, std::int64_t world) {
  const std::string asked = "gradient_accumulation_steps: a global batch of " + std::to_string(global_batch) +
                            " with a local batch of " + std::to_string(local_batch) + " on " + std::to_string(world) +
                            " ranks";
  if (global_batch < 1 || local_batch < 1 || world < 1) throw std::invalid_argument(asked + "; each is at least 1");
  const std::int64_t per_micro_step = local_batch * world;
  if (global_batch % per_micro_step != 0)
    throw std::invalid_argument(asked + " is no whole number of micro-steps; take a multiple of " +
                                std::to_string(per_micro_step));
  return global_batch / per_micro_step;
}

LinearWarmupLR::LinearWarmupLR(torch::optim::Optimizer& optimizer, std::int64_t warmup, std::int64_t total)
    : LambdaLR(optimizer, linear_warmup(warmup, total), total) {}

}  // namespace accrue::llm
