// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "kernels/device_updates.h"

namespace accrue {

/// Returns the stream in which a device's kernels are started; called at each start.
using CurrentStream = cudaStream_t (*)(int device);

/// CUDA kernels of every rule, compiled by nvcc.
std::unique_ptr<DeviceUpdates> make_cuda_updates(int device, CurrentStream stream);

}  // namespace accrue
