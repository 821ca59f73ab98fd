// SPDX-License-Identifier: Apache-2.0
// Which of this host's addresses other hosts can reach it by.
#pragma once

#include <string>
#include <vector>

#include "accrue/run/result.h"

namespace accrue {

struct LocalAddress {
  std::string address;    ///< numeric
  std::string interface;  ///< "eth0"
  /// "eth0 (10.0.0.2)"
  std::string text() const { return interface + " (" + address + ")"; }
};

/// One of an interface that is up.
struct OwnAddress : LocalAddress {
  bool loopback = false;
};

/// Whether a host's name says by itself that it is the host of whoever uses it: "localhost", 127.0.0.1, ::1.
bool is_loopback_name(const std::string& host);

/// Where ranks that meet at `host` listen for each other. `sources`: the addresses from which packets leave for it, the
/// best first. That is the address to use, unless it is the loopback interface's: then all ranks of one machine that
/// meet at a loopback address use that, and otherwise the host's only other address is used. Errors (rendezvous): no
/// source is among `own`, several addresses to choose from.
Result<LocalAddress> choose_address(const std::string& host, bool one_machine, const std::vector<std::string>& sources,
                                    const std::vector<OwnAddress>& own);

/// The same of this host, whose addresses are looked up. Errors (rendezvous): likewise, and `host` does not resolve.
Result<LocalAddress> address_towards(const std::string& host, bool one_machine);

/// What to do where Gloo could not connect the ranks. `chosen`: GLOO_SOCKET_IFNAME, or null. On one host the ranks meet
/// on loopback, which accrue-run names for those that it starts: nobody has to choose another.
std::string unconnected_hint(bool one_host, const char* chosen);

}  // namespace accrue
