// SPDX-License-Identifier: Apache-2.0
// Time of a part of the boundary under Megatron-LM's name for it, until the device is done with it. Thread: training.
#pragma once

#include "train/training.h"

namespace accrue {

class StepTimer {
 public:
  /// nullptr: the part has no timer.
  StepTimer(Training& training, const char* timer)
      : training_(training), timer_(timer), begin_(training.clock.mark()) {}
  ~StepTimer() {
    if (timer_ == nullptr) return;
    const ComputeClock::Mark end = training_.clock.mark();
    training_.clock.settle();
    training_.report.spend(timer_, training_.clock.ns(end) - training_.clock.ns(begin_));
  }
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;

 private:
  Training& training_;
  const char* timer_;
  ComputeClock::Mark begin_;
};

}  // namespace accrue
