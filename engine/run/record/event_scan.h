// SPDX-License-Identifier: Apache-2.0
// Facts about an events.jsonl that its next writer needs, found in one pass that reads line headers only.
#pragma once

#include <cstdint>
#include <map>

#include "accrue/run/base/result.h"

namespace accrue {

struct EventScan {
  std::map<std::int64_t, std::int64_t> next_seq;
  std::int64_t last_time_ns = 0;
  std::int64_t whole_bytes = 0;  ///< up to and including the last newline; the rest is torn
  std::int64_t total_bytes = 0;
};

/// Reads fd from its start. Errors (protocol): a line of another version; (disk): unreadable.
Result<EventScan> scan_events(int fd);

}  // namespace accrue
