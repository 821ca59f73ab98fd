// SPDX-License-Identifier: Apache-2.0
// What ends a rank that waits for the others to meet, where no supervisor would: a signal, at once, or the time that a
// start may take. A store or a peer that is stopped, rather than gone, answers no call and ends none.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace accrue {

class StartWatch {
 public:
  /// The meeting has deadlines of its own, which say more: this one is `join_timeout` three times over. The process
  /// then ends with the status of a lost peer; after SIGTERM or SIGINT, which the caller has blocked, with 130.
  StartWatch(std::int64_t rank, std::chrono::milliseconds join_timeout);
  /// The ranks have met: signals wait for whoever takes them next.
  ~StartWatch();
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

 private:
  void watch() const;

  const std::int64_t rank_;
  const std::chrono::milliseconds limit_;
  const int signal_fd_;
  const int over_fd_;
  std::thread thread_;
};

}  // namespace accrue
