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

/// The address by which this host reaches `host`. Where `host` is this host, and its name leads to the loopback
/// interface, the only other address that this host has. Errors (rendezvous): `host` does not resolve, no route leads
/// there, several addresses to choose from.
Result<LocalAddress> address_towards(const std::string& host);

}  // namespace accrue
