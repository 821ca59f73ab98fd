// SPDX-License-Identifier: Apache-2.0
// Runs calls one after the other in a thread of its own, which begins with the first of them.
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
  /// Waits for the call that runs; the rest is dropped.
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  /// Its wait() throws what `call` threw.
  std::unique_ptr<PendingCall> put(std::function<void()> call);
  /// True where all calls have ended. Only put() can change that.
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
