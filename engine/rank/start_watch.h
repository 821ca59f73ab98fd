// SPDX-License-Identifier: Apache-2.0
// Ends a rank that waits for the others to meet without a supervisor: at a signal at once, or after the time limit of a
// start. A store or a peer that is stopped, rather than gone, answers no call and ends none.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#include "accrue/run/base/owned_fd.h"

namespace accrue {

class StartWatch {
 public:
  /// The limit is three times `join_timeout`, because the meeting has its own deadlines with better messages. The
  /// process then ends with the status of a lost peer; after SIGTERM or SIGINT, which the caller has blocked, with 130.
  StartWatch(std::int64_t rank, std::chrono::milliseconds join_timeout);
  /// Ends the watch once the ranks have met: signals wait for their next receiver.
  ~StartWatch();
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

 private:
  void watch() const;

  const std::int64_t rank_;
  const std::chrono::milliseconds limit_;
  const OwnedFd signal_fd_;
  const OwnedFd over_fd_;
  std::thread thread_;
};

}  // namespace accrue
