// SPDX-License-Identifier: Apache-2.0
// ParamSchedulerHook: when MMEngine's schedules advance. Those by iteration advance after every micro-iteration, with
// or without an update, so the rate changes inside a window; those by epoch advance at the end of an epoch. A schedule
// by iteration must therefore be as long as the run's micro-iterations. Thread: the training thread.
// Source: mmengine.hooks.ParamSchedulerHook.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "accrue/accumulation/base_scheduler.h"
#include "accrue/run/window/accumulation_window.h"

namespace accrue::mmengine {

class ParamSchedulerHook {
 public:
  /// `window`: that of the optimizer wrapper; its schedule position advances with the schedulers by iteration.
  explicit ParamSchedulerHook(std::shared_ptr<AccumulationWindow> window);

  void add(std::shared_ptr<BaseScheduler> scheduler, bool by_epoch);

  /// Call once after each micro-iteration, after update_params().
  void after_train_iter();
  /// Call once after each epoch.
  void after_train_epoch();

  /// Inner steps taken so far, by iteration and by epoch.
  std::int64_t iteration_position() const { return window_->schedule_position(); }
  std::int64_t epoch_position() const { return epochs_; }

 private:
  std::shared_ptr<AccumulationWindow> window_;
  std::int64_t epochs_ = 0;  ///< that have ended
  std::vector<std::shared_ptr<BaseScheduler>> by_iteration_;
  std::vector<std::shared_ptr<BaseScheduler>> by_epoch_;
};

}  // namespace accrue::mmengine
