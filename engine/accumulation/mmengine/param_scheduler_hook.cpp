// SPDX-License-Identifier: Apache-2.0
// The window decides how many inner steps a micro-iteration takes. The end of an epoch is one step for every schedule
// by epoch.
#include "accrue/accumulation/mmengine/param_scheduler_hook.h"

#include <utility>

namespace accrue::mmengine {

ParamSchedulerHook::ParamSchedulerHook(std::shared_ptr<AccumulationWindow> window) : window_(std::move(window)) {}

void ParamSchedulerHook::add(std::shared_ptr<BaseScheduler> scheduler, bool by_epoch) {
  (by_epoch ? by_epoch_ : by_iteration_).push_back(std::move(scheduler));
}

void ParamSchedulerHook::after_train_iter() {
  for (std::int64_t ticks = window_->call_schedule(); ticks > 0; --ticks)
    for (const auto& scheduler : by_iteration_) scheduler->step();
}

void ParamSchedulerHook::after_train_epoch() {
  ++epochs_;
  for (const auto& scheduler : by_epoch_) scheduler->step();
}

}  // namespace accrue::mmengine
