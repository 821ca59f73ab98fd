// SPDX-License-Identifier: Apache-2.0
#include "peer_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace accrue {

std::string CommGroup::name_of(std::size_t member) const {
  const GroupMember& who = members.at(member);
  std::string name = "rank " + std::to_string(who.world_rank);
  if (who.pid != 0) name += " (pid " + std::to_string(who.pid) + ")";
  return name;
}

std::string CommGroup::within() const {
  const std::string time = "within " + std::to_string(timeout.count()) + " ms";
  return timeout_option.empty() ? time : time + " (" + timeout_option + ")";
}

PeerWatch::PeerWatch(const CommGroup& group) : pidfds_(group.members.size()) {
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    const pid_t pid = group.members[i].pid;
    if (pid == 0 || pid == ::getpid()) continue;
    // A peer that is already gone has no pidfd; its unfinished call becomes a time-out that names it.
    pidfds_[i] = OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  }
}

bool PeerWatch::ended(std::size_t member) const {
  pollfd watched{pidfds_[member].get(), POLLIN, 0};
  return watched.fd >= 0 && ::poll(&watched, 1, 0) > 0;
}

}  // namespace accrue
