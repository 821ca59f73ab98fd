// SPDX-License-Identifier: Apache-2.0
// One rank's file of a checkpoint: a safetensors archive. An entry with a whole tensor has the tensor's name. An entry
// with a part has the name, "#" and a number, and the metadata under that key describes the part:
//   {"name": "parameters.w", "shape": [8, 4], "offset": [4, 0], "extent": [4, 4], "first": 0}
// "first" is the entry's first element, counted in row-major order within the box.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "accrue/checkpoint/checkpoint.h"
#include "accrue/checkpoint/tensor_archive.h"
#include "accrue/run/weights/archive_header.h"

namespace accrue {

/// Errors: disk; internal (a duplicate name, a part whose values do not match its slice).
Result<WrittenArchive> write_shard(const std::filesystem::path& file, const std::vector<PlacedTensor>& tensors);

struct StoredPart {
  std::string name;
  TensorSlice slice;
};
/// Returns the contents of a shard's entry. Errors (protocol): its metadata does not describe a part, or not one that
/// matches it.
Result<StoredPart> stored_part(const ArchiveEntry& entry, const std::map<std::string, std::string>& metadata);

}  // namespace accrue
