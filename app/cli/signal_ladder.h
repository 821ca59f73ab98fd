// SPDX-License-Identifier: Apache-2.0
// When a signal means that the user insists. A log-out and a service manager send several signals, some of them twice;
// only a second Ctrl+C, or another signal again after a while, asks for more than the first did.
#pragma once

#include <signal.h>

#include <chrono>
#include <map>

namespace accrue::cli {

class SignalLadder {
 public:
  /// Notes the signal; true where it insists.
  bool insists(int number) {
    const auto now = Clock::now();
    const auto [first, is_new] = signalled_.try_emplace(number, now);
    return !is_new && (number == SIGINT || now - first->second >= insistence);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds insistence{1};  // what comes sooner belongs to the same log-out
  std::map<int, Clock::time_point> signalled_;          ///< when each signal came first
};

}  // namespace accrue::cli
