// SPDX-License-Identifier: Apache-2.0
// A spawned child shares this process's memory until it has become the program, and its parent thread is blocked
// meanwhile. So only another thread can end a child that was stopped in that phase.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace accrue {

/// While this object lives, it watches the children that its thread spawns. A child that is stopped (SIGSTOP) before it
/// has become its program is killed after `patience`.
class SpawnWatch {
 public:
  explicit SpawnWatch(std::chrono::milliseconds patience);
  ~SpawnWatch();
  SpawnWatch(const SpawnWatch&) = delete;
  SpawnWatch& operator=(const SpawnWatch&) = delete;

 private:
  void watch();

  const pid_t parent_;  ///< the spawning thread
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace accrue
