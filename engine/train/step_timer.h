// SPDX-License-Identifier: Apache-2.0
// Time of a part of the boundary under Megatron-LM's name for it, until the device is done with it. Thread: training.
#pragma once

#include "train/training.h"

namespace accrue {

/// Does the part. Of one that throws no time is taken; nullptr: it has no timer.
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
