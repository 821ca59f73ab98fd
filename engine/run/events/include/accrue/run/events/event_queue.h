// SPDX-License-Identifier: Apache-2.0
// Bounded queue from the supervisor's thread to the one that shows a run: one consumer, usually one producer. When it
// is full, gauges are coalesced, and arrays (micro-steps, operations, sync) are dropped and counted in dropped(). Other
// kinds are never dropped: push never waits, and exceeds the bound for them (a few per update). Thread: any.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "accrue/run/events/run_event.h"

namespace accrue {

class EventQueue {
 public:
  explicit EventQueue(std::size_t capacity = 65536) : capacity_(capacity) {}

  void push(RunEvent event) { push(std::span(&event, 1)); }
  /// Moves a batch in; the batch is never split between two drains.
  void push(std::span<RunEvent> together);
  /// Takes all waiting events, oldest first.
  std::vector<RunEvent> drain();
  std::size_t size() const;
  /// Number of events dropped since the start; they are still in the run folder.
  std::uint64_t dropped() const;

 private:
  void add(RunEvent event);

  mutable std::mutex mutex_;
  std::deque<RunEvent> events_;
  std::size_t capacity_;
  std::uint64_t dropped_ = 0;
};

}  // namespace accrue
