// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "accrue/comm/communicator.h"
#include "accrue/run/base/result.h"
#include "exchange.h"
#include "group.h"

namespace accrue {

/// Makes a group over shared memory; all members are on this host. Collective: the group. Errors: rendezvous (a member
/// did not come), out_of_memory, device.
Result<std::unique_ptr<Communicator>> make_shm_communicator(const CommGroup& group, Exchange& exchange);

}  // namespace accrue
