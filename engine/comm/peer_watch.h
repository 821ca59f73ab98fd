// SPDX-License-Identifier: Apache-2.0
// Detects the death of a peer on this host. A pidfd becomes readable at the death itself, zombie or not, and is immune
// to a reused pid, unlike kill(pid, 0).
#pragma once

#include <sys/types.h>

#include <vector>

#include "group.h"

namespace accrue {

class PeerWatch {
 public:
  /// Watches every member of this host except the caller.
  explicit PeerWatch(const CommGroup& group);
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  bool ended(std::size_t member) const;

 private:
  std::vector<int> pidfds_;  ///< by member; -1: nothing to watch
};

}  // namespace accrue
