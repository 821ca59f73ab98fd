// SPDX-License-Identifier: Apache-2.0
// The hand-over from the supervisor's thread to whoever shows a run: bounded, with one consumer and usually one
// producer. When it is full, gauges are coalesced and arrays (micro-steps, operations, sync) dropped, counted in
// dropped(); other kinds are never dropped: push waits for nobody and grows past the bound for those (a few per
// update). Thread: any.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "accrue/run/run_event.h"

namespace accrue {

class EventQueue {
 public:
  explicit EventQueue(std::size_t capacity = 65536) : capacity_(capacity) {}

  void push(RunEvent event) { push(std::span(&event, 1)); }
  /// Moves a batch in; the batch is never split between two drains.
  void push(std::span<RunEvent> together);
  /// Takes everything that waits, oldest first.
  std::vector<RunEvent> drain();
  std::size_t size() const;
  /// Events dropped since the start; what was dropped is still in the run folder.
  std::uint64_t dropped() const;

 private:
  void add(RunEvent event);

  mutable std::mutex mutex_;
  std::deque<RunEvent> events_;
  std::size_t capacity_;
  std::uint64_t dropped_ = 0;
};

}  // namespace accrue
