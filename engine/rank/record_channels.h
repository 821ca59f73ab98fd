// SPDX-License-Identifier: Apache-2.0
// Channels between all ranks and rank 0, whose process keeps the record: a socket pair for rank 0 itself, TCP for the
// others. A broadcast distributes the port and the password, so only ranks know them.
#pragma once

#include <chrono>
#include <vector>

#include "accrue/comm/rendezvous.h"
#include "accrue/run/base/owned_fd.h"

namespace accrue {

struct RecordChannels {
  OwnedFd own;                    ///< this rank's end
  std::vector<OwnedFd> of_ranks;  ///< on rank 0: the other ends, by rank
};

/// Collective: the world. Errors, equal on all ranks: a rank cannot reach rank 0 in time (rendezvous); rank 0 has too
/// many open files (device).
Result<RecordChannels> open_record_channels(Rendezvous& meeting, Communicator& world,
                                            std::chrono::milliseconds patience);

}  // namespace accrue
