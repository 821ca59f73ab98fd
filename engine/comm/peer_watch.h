// SPDX-License-Identifier: Apache-2.0
// Detects the death of a peer on this host. A pidfd becomes readable at the death itself, zombie or not, and is immune
// to a reused pid, unlike kill(pid, 0).
#pragma once

#include <sys/types.h>

#include <vector>

#include "accrue/run/base/owned_fd.h"
#include "group.h"

namespace accrue {

class PeerWatch {
 public:
  /// Watches every member of this host except the caller.
  explicit PeerWatch(const CommGroup& group);

  bool ended(std::size_t member) const;

 private:
  std::vector<OwnedFd> pidfds_;  ///< by member; none: nothing to watch
};

}  // namespace accrue
