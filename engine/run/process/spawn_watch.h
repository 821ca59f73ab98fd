// SPDX-License-Identifier: Apache-2.0
// A spawned child shares this process's memory until it has become the program, so its parent stands still meanwhile,
// and no clock of the parent's can end a child that was stopped there. Another thread's can.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace accrue {

/// While it lives, a child that the thread which made it spawns, and that somebody stops (SIGSTOP) before it has become
/// its program, is killed after `patience`.
class SpawnWatch {
 public:
  explicit SpawnWatch(std::chrono::milliseconds patience);
  ~SpawnWatch();
  SpawnWatch(const SpawnWatch&) = delete;
  SpawnWatch& operator=(const SpawnWatch&) = delete;

 private:
  void watch();

  const pid_t parent_;  ///< the thread that spawns
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace accrue
