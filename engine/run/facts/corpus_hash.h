// SPDX-License-Identifier: Apache-2.0
// Hashes that detect a changed file at a cost that does not grow with its size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/facts/data_facts.h"

namespace accrue {

struct HashedFiles {
  std::int64_t bytes = 0;  ///< of all files
  FileMark mark;           ///< of all files: their states one after the other, and one fingerprint
};

/// Hashes of each file its size, its ends and 62 places between them. Changes of single bytes elsewhere are not
/// detected. If the files are in the state of `known`, its fingerprint is theirs and they are not read. Errors: a file
/// is missing, empty or unreadable.
Result<HashedFiles> hash_files(const std::vector<std::filesystem::path>& files, const FileMark& known);

}  // namespace accrue
