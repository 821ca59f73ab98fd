// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/device_backend.h"

namespace accrue {

/// NCCL over one GPU per rank. Collective: the group. Errors: rendezvous.
Result<std::unique_ptr<Communicator>> make_nccl_group(const CommGroup& group,
                                                      const c10::intrusive_ptr<c10d::Store>& store, int device);

}  // namespace accrue
