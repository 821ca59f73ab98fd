// SPDX-License-Identifier: Apache-2.0
// manifest.json of a checkpoint: contents, progress of the run, kind of machine, and a hash of every file. It is
// written last, so a folder without it is not a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "accrue/checkpoint/checkpoint.h"

namespace accrue {

struct ManifestFile {
  std::string name;  ///< "shard-0.safetensors"
  std::int64_t bytes = 0;
  std::string xxh3;
};

struct Manifest {
  TrainingCursor cursor;
  CheckpointIdentity identity;
  std::vector<ManifestFile> files;  ///< by rank
};

std::string shard_name(std::int64_t rank);

std::string to_json(const Manifest& manifest);
/// Errors (protocol): not JSON, a missing or mistyped field, an impossible count, contradictory counts, files that are
/// not one shard per rank; (config): another format, with both versions and advice.
Result<Manifest> parse_manifest(const std::string& json);
/// Reads <folder>/manifest.json. Further errors: disk; more than 1 MiB.
Result<Manifest> read_manifest(const std::filesystem::path& folder);

/// Checks that each file has the manifest's size and hash. Errors (protocol) name the first that does not.
Result<void> verify_files(const std::filesystem::path& folder, std::span<const ManifestFile> files);

}  // namespace accrue
