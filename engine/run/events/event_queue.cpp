// SPDX-License-Identifier: Apache-2.0
// Problem: a busy studio must neither block the supervisor nor use unbounded memory. Solution: a full queue drops only
// events that the run folder has in full and that a picture does not need.
#include "accrue/run/events/event_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace accrue {
namespace {

bool may_be_dropped(const EventBody& body) {
  return std::holds_alternative<MicroSteps>(body) || std::holds_alternative<Operations>(body) ||
         std::holds_alternative<Sync>(body);
}

/// Readings of which only the latest per rank matters.
bool is_reading(const EventBody& body) {
  return std::holds_alternative<Gauge>(body) || std::holds_alternative<Heartbeat>(body);
}

}  // namespace

void EventQueue::push(std::span<RunEvent> together) {
  const std::lock_guard lock(mutex_);
  for (RunEvent& event : together) add(std::move(event));
}

/// Requires the locked mutex.
void EventQueue::add(RunEvent event) {
  if (events_.size() < capacity_) {
    events_.push_back(std::move(event));
    return;
  }
  if (may_be_dropped(event.body)) {
    ++dropped_;
    return;
  }
  if (is_reading(event.body)) {
    const auto older = std::find_if(events_.rbegin(), events_.rend(), [&event](const RunEvent& waiting) {
      return waiting.rank == event.rank && waiting.body.index() == event.body.index();
    });
    ++dropped_;
    if (older != events_.rend()) {
      events_.erase(std::next(older).base());
    } else {
      return;
    }
  }
  events_.push_back(std::move(event));
}

std::vector<RunEvent> EventQueue::drain() {
  std::deque<RunEvent> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(events_);
  }
  return {std::make_move_iterator(taken.begin()), std::make_move_iterator(taken.end())};
}

std::size_t EventQueue::size() const {
  const std::lock_guard lock(mutex_);
  return events_.size();
}

std::uint64_t EventQueue::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace accrue
