// SPDX-License-Identifier: Apache-2.0
// The first thing that ranks do together: each says who and where it is and what its processor can, and waits until all
// have.
#pragma once

#include <vector>

#include "host_identity.h"
#include "rank_store.h"

namespace accrue {

/// What all ranks said, by rank. Errors: rendezvous, which names how many came and who is missing; protocol.
Result<std::vector<HostIdentity>> hold_meeting(const StorePtr& store, const RankIdentity& identity,
                                               const CommOptions& options);

}  // namespace accrue
