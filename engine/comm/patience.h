// SPDX-License-Identifier: Apache-2.0
// How long a caller has waited for its peers. Only time in which the caller itself ran counts: after a freeze of the
// whole process tree (SIGSTOP, the cgroup freezer, docker pause) the monotonic clock has gone on, and the rank that
// wakes first would blame a peer that was frozen as well.
#pragma once

#include <algorithm>
#include <chrono>

namespace accrue {

class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  /// Longest sleep between two looks.
  static constexpr Milliseconds kSlice{50};
  /// Most that one look can count: a sleep of one slice and a slow wake-up on a busy machine.
  static constexpr Milliseconds kLook{250};

  /// unlimited: never exhausted, whatever the limit.
  Patience(Milliseconds limit, bool unlimited) : limit_(limit), unlimited_(unlimited), last_(Clock::now()) {}

  /// How long the next sleep may last.
  Milliseconds slice() const {
    if (unlimited_) return kSlice;
    const auto left = std::chrono::duration_cast<Milliseconds>(limit_ - waited_);
    return std::clamp(left, Milliseconds(1), kSlice);
  }

  /// Called after each sleep. True where the caller has waited for as long as it may.
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
