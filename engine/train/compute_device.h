// SPDX-License-Identifier: Apache-2.0
// Device of a rank, which holds model, batches, gradients, optimizer state and dropout's generator.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "accrue/data/data_source.h"
#include "accrue/run/base/result.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

/// Opens the CPU, or CUDA device `local_rank`, which becomes this thread's current one. Errors: device if there is no
/// CUDA module, no driver or no such device.
Result<at::Device> open_compute_device(DeviceKind kind, std::int64_t local_rank);

/// Returns the same samples, as batches on the device.
std::unique_ptr<DataSource> on_device(std::unique_ptr<DataSource> data, at::Device device);

/// Returns the device's generator, which dropout uses.
at::Generator default_generator(at::Device device);

}  // namespace accrue
