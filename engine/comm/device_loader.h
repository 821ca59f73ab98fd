// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_backend.h"

namespace accrue {

/// Opens libaccrue_cuda.so, beside this library or on the loader's path, once; it stays open. Must be called before any
/// query of ATen about CUDA: an earlier query disables CUDA for good. Errors: device, with the loader's message.
Result<DeviceBackend*> load_device_backend();

/// Returns the CUDA device of this host's rank, with the index local_rank. Errors: device if it does not exist.
Result<int> own_cuda_device(std::int64_t local_rank);

/// Makes an NCCL communicator on GPU local_rank, as returned by own_cuda_device(). Collective: the group. Errors:
/// device, rendezvous.
Result<std::unique_ptr<Communicator>> make_nccl_communicator(const CommGroup& group,
                                                             const c10::intrusive_ptr<c10d::Store>& store,
                                                             std::int64_t local_rank);

}  // namespace accrue
