// SPDX-License-Identifier: Apache-2.0
// Encoding of one event as one JSON line. A line is at most 1 MiB and 64 levels deep; both limits are checked before
// anything is allocated from it.
#pragma once

#include <string>
#include <string_view>

#include "accrue/run/base/result.h"
#include "accrue/run/events/run_event.h"

namespace accrue {

inline constexpr std::size_t max_event_bytes = 1 << 20;

/// The line lacks its newline.
std::string encode_event(const RunEvent& event);
/// Errors (code protocol): not JSON, a missing or mistyped field, another version (both versions named), too long, too
/// deep.
Result<RunEvent> decode_event(std::string_view line);

}  // namespace accrue
