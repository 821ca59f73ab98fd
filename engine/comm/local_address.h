// SPDX-License-Identifier: Apache-2.0
// Choice of the address by which other hosts reach this one.
#pragma once

#include <string>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

struct LocalAddress {
  std::string address;    ///< numeric
  std::string interface;  ///< "eth0"
  /// "eth0 (10.0.0.2)"
  std::string text() const { return interface + " (" + address + ")"; }
};

/// Address of an interface that is up.
struct OwnAddress : LocalAddress {
  bool loopback = false;
};

/// Whether a host name always means the user's own host: "localhost", 127.0.0.1, ::1.
bool is_loopback_name(const std::string& host);

/// Chooses the address on which ranks that meet at `host` listen. `sources`: source addresses of packets to it, best
/// first. The first is used, unless it is the loopback interface's. Then all ranks of one machine that meet at a
/// loopback address use it, and otherwise the host's only other address is used. Errors (rendezvous): no source is in
/// `own`, or several addresses are possible.
Result<LocalAddress> choose_address(const std::string& host, bool one_machine, const std::vector<std::string>& sources,
                                    const std::vector<OwnAddress>& own);

/// Does the same for this host, and looks up its addresses. Errors (rendezvous): likewise, and `host` does not resolve.
Result<LocalAddress> address_towards(const std::string& host, bool one_machine);

/// Advice if Gloo could not connect the ranks. `chosen`: GLOO_SOCKET_IFNAME, or null. On one host the ranks meet on
/// loopback, which accrue-run sets for its own ranks.
std::string unconnected_hint(bool one_host, const char* chosen);

}  // namespace accrue
