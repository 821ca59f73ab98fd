// SPDX-License-Identifier: Apache-2.0
// First exchange of the ranks: each publishes its identity, place and processor, and waits for all others.
#pragma once

#include <vector>

#include "host_identity.h"
#include "rank_store.h"

namespace accrue {

/// Returns all ranks' identities, by rank. Errors: rendezvous, with the number of ranks that came and the missing ones;
/// protocol.
Result<std::vector<HostIdentity>> hold_meeting(const StorePtr& store, const RankIdentity& identity,
                                               const CommOptions& options);

}  // namespace accrue
