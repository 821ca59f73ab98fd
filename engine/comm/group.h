// SPDX-License-Identifier: Apache-2.0
// Facts about the ranks of a group for its backend, gathered once by the rendezvous.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace accrue {

struct GroupMember {
  std::int64_t world_rank = 0;
  pid_t pid = 0;  ///< 0 if the rank is on another host
};

struct CommGroup {
  std::string axis;       ///< the group's name
  std::int64_t rank = 0;  ///< this rank's place in members
  std::vector<GroupMember> members;
  std::chrono::milliseconds timeout{60000};       ///< of one call
  std::chrono::milliseconds join_timeout{60000};  ///< of building the group
  std::string timeout_option;                     ///< name of the option for `timeout`
  bool one_host = true;                           ///< all members run on this host
  bool one_machine = true;                        ///< or in containers on the same machine
  std::string meeting_host;                       ///< address that all members reach: MASTER_ADDR

  std::int64_t size() const { return static_cast<std::int64_t>(members.size()); }
  /// Returns "rank 3 (pid 4711)", with the rank in the world.
  std::string name_of(std::size_t member) const;
  /// Returns "within 1500 ms (launch.collective_timeout_s)".
  std::string within() const;
};

}  // namespace accrue
