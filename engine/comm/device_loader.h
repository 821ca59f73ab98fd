// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_backend.h"

namespace accrue {

/// Opens libaccrue_cuda.so, beside this library or on the loader's path, once; it stays open for the life of the
/// process. Must run before anything asks ATen about CUDA: a question asked earlier leaves CUDA off for good.
/// Errors: device, with the loader's own words.
Result<DeviceBackend*> load_device_backend();

/// The CUDA device that belongs to this host's rank: its index is local_rank. Errors: device, where there is none.
Result<int> own_cuda_device(std::int64_t local_rank);

/// NCCL on GPU local_rank, which own_cuda_device() answered. Collective: the group. Errors: device, rendezvous.
Result<std::unique_ptr<Communicator>> make_nccl_communicator(const CommGroup& group,
                                                             const c10::intrusive_ptr<c10d::Store>& store,
                                                             std::int64_t local_rank);

}  // namespace accrue
