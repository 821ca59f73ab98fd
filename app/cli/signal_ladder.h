// SPDX-License-Identifier: Apache-2.0
// Recognises a repeated signal as a user's insistence. A log-out and a service manager send several signals, some of
// them twice. Only a second Ctrl+C, or the same signal again after a while, counts.
#pragma once

#include <signal.h>

#include <chrono>
#include <map>

namespace accrue::cli {

class SignalLadder {
 public:
  /// Records the signal; returns whether it insists.
  bool insists(int number) {
    const auto now = Clock::now();
    const auto [first, is_new] = signalled_.try_emplace(number, now);
    return !is_new && (number == SIGINT || now - first->second >= insistence);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds insistence{1};  // a faster repetition belongs to the same log-out
  std::map<int, Clock::time_point> signalled_;          ///< time of each signal's first arrival
};

}  // namespace accrue::cli
