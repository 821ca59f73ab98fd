// SPDX-License-Identifier: Apache-2.0
// Time that a caller has waited for its peers. Only time in which the caller itself ran counts. After a freeze of the
// whole process tree (SIGSTOP, the cgroup freezer, docker pause) the monotonic clock has advanced. The rank that wakes
// first would otherwise blame a frozen peer.
#pragma once

#include <algorithm>
#include <chrono>

namespace accrue {

class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  /// Maximum sleep between two checks.
  static constexpr Milliseconds kSlice{50};
  /// Maximum time that one check can add: a sleep of one slice and a slow wake-up on a busy machine.
  static constexpr Milliseconds kLook{250};

  /// unlimited: never exhausted, regardless of the limit.
  Patience(Milliseconds limit, bool unlimited) : limit_(limit), unlimited_(unlimited), last_(Clock::now()) {}

  /// Maximum duration of the next sleep.
  Milliseconds slice() const {
    if (unlimited_) return kSlice;
    const auto left = std::chrono::duration_cast<Milliseconds>(limit_ - waited_);
    return std::clamp(left, Milliseconds(1), kSlice);
  }

  /// Call after each sleep. Returns true once the caller has waited for the limit.
  bool exhausted() {
    const auto now = Clock::now();
    waited_ += std::min<Clock::duration>(now - last_, kLook);
    last_ = now;
    return !unlimited_ && waited_ >= limit_;
  }

 private:
  Milliseconds limit_;
  bool unlimited_;
  Clock::time_point last_;
  Clock::duration waited_{0};
};

}  // namespace accrue
