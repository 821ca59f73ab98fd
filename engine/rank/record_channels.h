// SPDX-License-Identifier: Apache-2.0
// The channels between rank 0, in whose process the record is kept, and all ranks: a socket pair for rank 0 itself, TCP
// for the others. Where the port is and the word that admits to it travel by a broadcast, so only ranks know them.
#pragma once

#include <chrono>
#include <vector>

#include "accrue/comm/rendezvous.h"

namespace accrue {

/// Descriptors, owned by whoever has them.
struct RecordChannels {
  int own = -1;               ///< this rank's end
  std::vector<int> of_ranks;  ///< on rank 0: the other ends, by rank
};

/// Collective: the world. Errors (rendezvous), the same on all ranks: a rank cannot reach rank 0 in that time.
Result<RecordChannels> open_record_channels(Rendezvous& meeting, Communicator& world,
                                            std::chrono::milliseconds patience);

}  // namespace accrue
