// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "kernels/kernels.h"

namespace accrue {

/// Location of a rank. Two ranks can share memory if `place` is equal: same boot of the same kernel, same host name,
/// same pid namespace (containers of one host differ in the last two).
struct HostIdentity {
  std::string host;
  std::string place;
  pid_t pid = 0;
  InstructionSet instructions = InstructionSet::generic;  ///< instructions of its kernels
  bool tiles_pay = false;                                 ///< its matrix products are faster on our tiles

  std::string encode() const;
  static std::optional<HostIdentity> decode(const std::string& text);
  /// Whether both run on the same boot of one kernel, even in different containers.
  bool same_machine(const HostIdentity& other) const;
};

HostIdentity this_host();

}  // namespace accrue
