// SPDX-License-Identifier: Apache-2.0
// Memory of this process on its compute device. Thread: any.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "accrue/run/facts/host_facts.h"

namespace accrue {

/// Resident memory of this process.
std::int64_t resident_bytes();
/// On a CPU: resident memory, now and at its peak. On a device without its module nothing is known.
MemoryUse memory_use(at::Device device);

}  // namespace accrue
