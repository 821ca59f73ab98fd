// SPDX-License-Identifier: Apache-2.0
// The readers behind local_facts, told where the root of the file system is.
#pragma once

#include <cstdint>
#include <filesystem>

#include "accrue/run/host_facts.h"

namespace accrue::host_detail {

/// Bytes of memory, or the least limit of this process's control groups (version 1 or 2) and their parents.
std::int64_t usable_memory(const std::filesystem::path& root);
/// Name and flags of the first processor.
void read_cpu(const std::filesystem::path& root, HostFacts& facts);

}  // namespace accrue::host_detail
