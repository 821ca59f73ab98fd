// SPDX-License-Identifier: Apache-2.0
// One rank's file of a checkpoint: a safetensors archive. Entries that hold a whole tensor bear its name; an entry that
// holds a part bears the name, "#" and a number, and the metadata under that key says which part:
//   {"name": "parameters.w", "shape": [8, 4], "offset": [4, 0], "extent": [4, 4], "first": 0}
// where "first" is the first element of the box, counted in row-major order, that the entry holds.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "accrue/checkpoint/checkpoint.h"
#include "accrue/checkpoint/tensor_archive.h"
#include "checkpoint/tensor_archive_header.h"

namespace accrue {

/// Errors: disk; internal (a name twice, a part whose values do not fit its slice).
Result<WrittenArchive> write_shard(const std::filesystem::path& file, const std::vector<PlacedTensor>& tensors);

struct StoredPart {
  std::string name;
  TensorSlice slice;
};
/// What an entry of a shard holds. Errors (protocol): what its metadata says makes no part, or not this entry's.
Result<StoredPart> stored_part(const ArchiveEntry& entry, const std::map<std::string, std::string>& metadata);

}  // namespace accrue
