// SPDX-License-Identifier: Apache-2.0
// Hashes that detect a changed file at a cost that does not grow with its size.
#pragma once

#include <cstdint>
#include <filesystem>

#include "accrue/run/base/result.h"
#include "content_hash.h"

namespace accrue {

/// Hashes a file's size, its ends and 62 places between them. Changes of single bytes elsewhere are not detected.
/// Returns the size.
Result<std::int64_t> hash_file(ContentHash& hash, const std::filesystem::path& path);

}  // namespace accrue
