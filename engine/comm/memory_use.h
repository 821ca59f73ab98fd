// SPDX-License-Identifier: Apache-2.0
// What this process holds of the memory that it computes in. Thread: any.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "accrue/run/host_facts.h"

namespace accrue {

/// Resident memory of this process.
std::int64_t resident_bytes();
/// Of a CPU what is resident, now and at most since this program began. On a device without its module nothing is
/// known.
MemoryUse memory_use(at::Device device);

}  // namespace accrue
