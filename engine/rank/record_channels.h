// SPDX-License-Identifier: Apache-2.0
// Channels between all ranks and rank 0, whose process keeps the record: a socket pair for rank 0 itself, TCP for the
// others. A broadcast distributes the port and the password, so only ranks know them.
#pragma once

#include <chrono>
#include <vector>

#include "accrue/comm/rendezvous.h"

namespace accrue {

/// Descriptors; the holder owns them.
struct RecordChannels {
  int own = -1;               ///< this rank's end
  std::vector<int> of_ranks;  ///< on rank 0: the other ends, by rank
};

/// Collective: the world. Errors (rendezvous), equal on all ranks: a rank cannot reach rank 0 in time.
Result<RecordChannels> open_record_channels(Rendezvous& meeting, Communicator& world,
                                            std::chrono::milliseconds patience);

}  // namespace accrue
