// SPDX-License-Identifier: Apache-2.0
// Outgoing events of a rank: numbered, stamped and turned into lines. Entries of micro-steps, operations and
// collectives are merged into arrays, flushed every 33 ms and before any other kind. So a fast run costs one line per
// frame instead of one per micro-step. The training thread only appends under a short lock; the channel thread encodes.
// Bounded: if the reader is slow, traces and gauges are dropped first, then other recurring events; both are counted,
// and a warning gives the numbers. Events sent once (the end, answers) are always kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "accrue/run/base/monotonic_clock.h"
#include "accrue/run/events/run_event.h"

namespace accrue {

class EventOutbox {
 public:
  static constexpr std::chrono::milliseconds flush_interval{33};

  EventOutbox(std::int64_t rank, std::int64_t origin_ns, std::int64_t first_seq)
      : rank_(rank), origin_ns_(origin_ns), next_seq_(first_seq) {}

  /// Queues an event. Returns true if it should be sent at once. Thread: any.
  bool post(EventBody body);
  /// Returns when the waiting arrays are due (monotonic ns); empty if nothing waits.
  std::optional<std::int64_t> due_ns() const;
  /// Returns the due events as lines, about a mebibyte at most; with `all` also traces that are not yet due. Thread:
  /// channel.
  std::string take_lines(std::int64_t now_ns, bool all);
  /// Drops all waiting events. Thread: channel.
  void discard();
  /// Approximate memory of the waiting events.
  std::size_t waiting_bytes() const;

 private:
  bool append_trace(EventBody& body, std::int64_t now_ns);
  bool no_traces() const;
  void seal_traces();
  void seal(EventBody body, std::int64_t time_ns);
  void report_left_out(std::int64_t now_ns);

  const std::int64_t rank_;
  const std::int64_t origin_ns_;
  mutable std::mutex mutex_;
  std::deque<RunEvent> sealed_;
  std::size_t sealed_bytes_ = 0;
  MicroSteps micro_steps_;
  Operations operations_;
  Sync syncs_;
  std::int64_t first_trace_ns_ = 0;
  std::int64_t last_trace_ns_ = 0;
  std::int64_t next_seq_;
  std::int64_t left_out_traces_ = 0;  ///< micro-step, operation, sync and gauge events, since the last report
  std::int64_t left_out_others_ = 0;
};

}  // namespace accrue
