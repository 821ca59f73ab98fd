// SPDX-License-Identifier: Apache-2.0
// The supervisor's state of one rank of one attempt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "accrue/run/events/event_reader.h"
#include "accrue/run/events/rank_command.h"
#include "rank_process.h"

namespace accrue {

struct RankSlot {
  RankProcess process;
  /// Whether another launcher started it, here or on another host. It is known by its channel alone: it runs while the
  /// channel is open, reports its end on it, and is killed by a command.
  bool adopted = false;
  EventReader reader;
  std::string outbox;    ///< commands not yet accepted by the socket
  std::string log_tail;  ///< last lines of its output
  bool ready = false;
  bool told_to_end = false;    ///< it was signalled, which explains its end
  bool said_farewell = false;  ///< adopted: it ended in order
  std::optional<ExitReport> exit;
  std::optional<RunEvent> failure_report;  ///< its report of its own failure, kept until its exit is known
  std::int64_t unreadable_lines = 0;       ///< lines already warned about

  bool gone() const { return adopted ? exit.has_value() : !process.child.running(); }
  /// Returns how it ended, once it has.
  std::optional<ExitReport> reap();
  /// Ends it at once. An adopted rank that does not end is given up at the second call.
  void kill();
  /// Queues a command and sends what the socket accepts; the rest goes out in the next turn.
  void send(const RankCommand& command);
  void flush();
  /// Returns waiting bytes of the channel, at most a slice; closes the channel at its end.
  std::string read_events();
  /// Does the same for its output.
  std::string read_output();
};

/// Returns the last whole lines of `text`, at most max_bytes.
std::string last_lines(const std::string& text, std::size_t max_bytes);

}  // namespace accrue
