// SPDX-License-Identifier: Apache-2.0
// What the next writer of an events.jsonl must know, found in one pass that reads line headers only.
#pragma once

#include <cstdint>
#include <map>

#include "accrue/run/result.h"

namespace accrue {

struct EventScan {
  std::map<std::int64_t, std::int64_t> next_seq;
  std::int64_t last_time_ns = 0;
  std::int64_t whole_bytes = 0;  ///< up to and with the last newline; what follows is torn
  std::int64_t total_bytes = 0;
};

/// Reads fd from its start. Errors (protocol): a line of another version; (disk): unreadable.
Result<EventScan> scan_events(int fd);

}  // namespace accrue
