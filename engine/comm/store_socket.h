// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"

namespace accrue {

/// Returns a listening TCP socket for the ranks' store, bound to `host` alone; c10d itself would listen on every
/// interface, without authentication. -1 if host is not an address of this machine (a service name, a forwarded port):
/// the caller must then let c10d listen. Errors: rendezvous (the port is taken, the name does not resolve).
Result<OwnedFd> listen_for_store(const std::string& host, int port);

}  // namespace accrue
