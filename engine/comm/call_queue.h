// SPDX-License-Identifier: Apache-2.0
// Runs calls one after the other on its own thread, which starts with the first call.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "accrue/comm/communicator.h"

namespace accrue {

class CallQueue {
 public:
  CallQueue() = default;
  /// Waits for the running call; drops the rest.
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  /// wait() of the result throws the exception of `call`.
  std::unique_ptr<PendingCall> put(std::function<void()> call);
  /// Whether all calls have ended. Only put() changes this to false.
  bool idle();

 private:
  struct Entry;
  class Pending;
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Entry>> waiting_;
  bool busy_ = false;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace accrue
