// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netdb.h>

#include <chrono>

#include "accrue/run/base/owned_fd.h"

namespace accrue {

/// Milliseconds until then, rounded up; 0 once it is past.
int left_ms(std::chrono::steady_clock::time_point deadline);

/// Connects, without blocking, to the first address of the list that answers. Each gets an equal share of the remaining
/// time, so a silent one does not prevent attempts at the others. Errors: returns none, with errno of the last address.
OwnedFd connect_to_any(const addrinfo* addresses, std::chrono::steady_clock::time_point deadline);

}  // namespace accrue
