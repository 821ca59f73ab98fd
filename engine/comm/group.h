// SPDX-License-Identifier: Apache-2.0
// What a backend is told about the ranks it joins: facts that the rendezvous gathered once.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace accrue {

struct GroupMember {
  std::int64_t world_rank = 0;
  pid_t pid = 0;  ///< 0 where the rank lives on another host
};

struct CommGroup {
  std::string axis;       ///< the group's name
  std::int64_t rank = 0;  ///< this rank's place in members
  std::vector<GroupMember> members;
  std::chrono::milliseconds timeout{60000};       ///< of one call
  std::chrono::milliseconds join_timeout{60000};  ///< of building the group
  std::string timeout_option;                     ///< what the caller sets timeout by
  bool one_host = true;                           ///< all members run here
  bool one_machine = true;                        ///< or in containers beside each other
  std::string meeting_host;                       ///< that all members reach: MASTER_ADDR

  std::int64_t size() const { return static_cast<std::int64_t>(members.size()); }
  /// "rank 3 (pid 4711)", in ranks of the world.
  std::string name_of(std::size_t member) const;
  /// "within 1500 ms (launch.collective_timeout_s)".
  std::string within() const;
};

}  // namespace accrue
