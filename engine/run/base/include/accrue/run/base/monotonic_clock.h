// SPDX-License-Identifier: Apache-2.0
// The clock of all events: equal in every process of a host, and never set back.
#pragma once

#include <cstdint>
#include <ctime>

namespace accrue {

/// CLOCK_MONOTONIC in ns.
inline std::int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace accrue
