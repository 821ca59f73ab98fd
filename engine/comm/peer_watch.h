// SPDX-License-Identifier: Apache-2.0
// Notices that a peer on this host has died. A pidfd becomes readable at the death itself, zombie or not, and cannot be
// fooled by a reused pid, which kill(pid, 0) can.
#pragma once

#include <sys/types.h>

#include <vector>

#include "group.h"

namespace accrue {

class PeerWatch {
 public:
  /// Watches every member of this host but the caller itself.
  explicit PeerWatch(const CommGroup& group);
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  bool ended(std::size_t member) const;

 private:
  std::vector<int> pidfds_;  ///< by member; -1 where there is nothing to watch
};

}  // namespace accrue
