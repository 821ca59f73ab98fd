// SPDX-License-Identifier: Apache-2.0
// ParamSchedulerHook: when schedules move in MMEngine. Those by iteration move after every micro-iteration, updates or
// not, so the rate changes inside a window; those by epoch move when an epoch has ended. A schedule by iteration is
// therefore as long as the run has micro-iterations. Thread: the training thread.
// Source: mmengine.hooks.ParamSchedulerHook.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "accrue/accumulation/base_scheduler.h"
#include "accrue/run/accumulation_window.h"

namespace accrue::mmengine {

class ParamSchedulerHook {
 public:
  /// `window`: the optimizer wrapper's, whose schedule position moves with the schedulers by iteration.
  explicit ParamSchedulerHook(std::shared_ptr<AccumulationWindow> window);

  void add(std::shared_ptr<BaseScheduler> scheduler, bool by_epoch);

  /// Once after each micro-iteration, after update_params().
  void after_train_iter();
  /// Once after each epoch.
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
