// SPDX-License-Identifier: Apache-2.0
// Events on their way out of a rank: numbered, stamped and turned into lines. Entries of micro-steps, operations and
// collectives are merged into arrays, flushed every 33 ms and before any other kind, so a fast run costs a line a frame
// and not a line a micro-step. The training thread only appends under a short lock; encoding is the channel thread's.
// Bounded: behind a reader that does not read, traces and gauges are left out first, then whatever else training tells
// again and again; both are counted, and a warning says how many. What is told once (the end, answers) is always kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "accrue/run/monotonic_clock.h"
#include "accrue/run/run_event.h"

namespace accrue {

class EventOutbox {
 public:
  static constexpr std::chrono::milliseconds flush_interval{33};

  EventOutbox(std::int64_t rank, std::int64_t origin_ns, std::int64_t first_seq)
      : rank_(rank), origin_ns_(origin_ns), next_seq_(first_seq) {}

  /// Queues an event. Returns true where the reader should have it at once. Thread: any.
  bool post(EventBody body);
  /// When the waiting arrays are due (monotonic ns); nothing waits: empty.
  std::optional<std::int64_t> due_ns() const;
  /// What is due by now as lines, about a mebibyte at most; traces that are not due yet as well if `all`. Thread:
  /// channel.
  std::string take_lines(std::int64_t now_ns, bool all);
  /// Forgets what waits. Thread: channel.
  void discard();
  /// Memory that waiting events take, roughly.
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
