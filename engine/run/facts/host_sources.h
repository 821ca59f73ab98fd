// SPDX-License-Identifier: Apache-2.0
// Readers behind local_facts(), with the root of the file system as a parameter.
#pragma once

#include <cstdint>
#include <filesystem>

#include "accrue/run/facts/host_facts.h"

namespace accrue::host_detail {

/// Bytes of memory, limited by this process's control groups (version 1 or 2) and their parents.
std::int64_t usable_memory(const std::filesystem::path& root);
/// Name and flags of the first processor.
void read_cpu(const std::filesystem::path& root, HostFacts& facts);

}  // namespace accrue::host_detail
