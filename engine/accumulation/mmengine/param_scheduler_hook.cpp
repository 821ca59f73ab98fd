// SPDX-License-Identifier: Apache-2.0
// Two clocks, one window each: how many inner steps a call takes is the window's to say. The ends of epochs have a
// window of their own because a run may hold schedules of both kinds, and a window has one clock.
#include "accrue/accumulation/mmengine/param_scheduler_hook.h"

#include <utility>

namespace accrue::mmengine {
namespace {

WindowShape epochs_shape() {
  WindowShape shape;
  shape.knobs = preset(Dialect::mmengine);
  shape.batches_per_epoch = unknown_length;
  return shape;
}

void step_all(const std::vector<std::shared_ptr<BaseScheduler>>& schedulers, std::int64_t ticks) {
  for (std::int64_t tick = 0; tick < ticks; ++tick)
    for (const auto& scheduler : schedulers) scheduler->step();
}

}  // namespace

ParamSchedulerHook::ParamSchedulerHook(std::shared_ptr<AccumulationWindow> window)
    : window_(std::move(window)), epochs_(epochs_shape()) {}

void ParamSchedulerHook::add(std::shared_ptr<BaseScheduler> scheduler, bool by_epoch) {
  (by_epoch ? by_epoch_ : by_iteration_).push_back(std::move(scheduler));
}

void ParamSchedulerHook::after_train_iter() {
  step_all(by_iteration_, window_->call_schedule());
}

void ParamSchedulerHook::after_train_epoch() {
  step_all(by_epoch_, epochs_.call_schedule());
}

}  // namespace accrue::mmengine
