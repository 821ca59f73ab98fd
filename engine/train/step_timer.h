// SPDX-License-Identifier: Apache-2.0
// Times a part of the boundary under Megatron-LM's name, until the device has finished it. Thread: training.
#pragma once

#include "train/training.h"

namespace accrue {

/// Runs the part. If it throws, no time is recorded. nullptr: no timer.
template <typename Part>
void timed(Training& training, const char* timer, const Part& part) {
  if (timer == nullptr) return part();
  const ComputeClock::Mark begin = training.clock.mark();
  part();
  const ComputeClock::Mark end = training.clock.mark();
  training.clock.settle();
  training.report.spend(timer, training.clock.ns(end) - training.clock.ns(begin));
}

}  // namespace accrue
