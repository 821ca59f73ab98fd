// SPDX-License-Identifier: Apache-2.0
// Hashes that show a file of other content for a cost that does not grow with it.
#pragma once

#include <cstdint>
#include <filesystem>

#include "accrue/run/result.h"
#include "content_hash.h"

namespace accrue {

/// A file's size and parts of it: its ends and 62 places between them. A change of single bytes between those places is
/// not seen. Returns the size.
Result<std::int64_t> hash_file(ContentHash& hash, const std::filesystem::path& path);

}  // namespace accrue
