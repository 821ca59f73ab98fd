// SPDX-License-Identifier: Apache-2.0
// manifest.json of a checkpoint: what was saved, where the run stood, on what kind of machine, and a hash of every
// file. It is written last, so a folder without it is not a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
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
/// Errors (protocol): not JSON, another schema (both named), a missing or mistyped field, files that are not one shard
/// per rank.
Result<Manifest> parse_manifest(const std::string& json);
/// Reads <folder>/manifest.json. Further errors: disk; more than 1 MiB.
Result<Manifest> read_manifest(const std::filesystem::path& folder);

/// Whether every file has the size and the hash that the manifest says. Errors (protocol) name the first that has not.
Result<void> verify_files(const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace accrue
