// SPDX-License-Identifier: Apache-2.0
// What the supervisor keeps of one rank of one attempt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "accrue/run/event_reader.h"
#include "accrue/run/rank_command.h"
#include "rank_process.h"

namespace accrue {

struct RankSlot {
  RankProcess process;
  /// Started by another launcher, here or on another host. It is known by its channel alone: it runs as long as that is
  /// open, says on it how it ends, and is killed by a command.
  bool adopted = false;
  EventReader reader;
  std::string outbox;    ///< commands that the socket has not taken yet
  std::string log_tail;  ///< last lines of its output
  bool ready = false;
  bool told_to_end = false;    ///< we signalled it: its end explains itself
  bool said_farewell = false;  ///< adopted: it ends in order
  std::optional<ExitReport> exit;
  std::optional<RunEvent> failure_report;  ///< what it said of its own failure, kept until its exit is known
  std::int64_t unreadable_lines = 0;       ///< already warned about

  bool gone() const { return adopted ? exit.has_value() : !process.child.running(); }
  /// How it ended, once it has.
  std::optional<ExitReport> reap();
  /// Ends it at once. An adopted rank that still does not end is given up at the second call.
  void kill();
  /// Queues a command and sends what the socket takes; the rest goes with the next turn.
  void send(const RankCommand& command);
  void flush();
  /// Bytes that wait on the channel, at most a slice of them; closes it at its end.
  std::string read_events();
  /// Likewise its output.
  std::string read_output();
};

/// The last whole lines of at most max_bytes.
std::string last_lines(const std::string& text, std::size_t max_bytes);

}  // namespace accrue
