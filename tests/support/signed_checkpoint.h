// SPDX-License-Identifier: Apache-2.0
// Damage that hashes do not reveal: changes a checkpoint and updates its hashes, so that a test reaches the checks that
// follow the hashes.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "accrue/checkpoint/tensor_archive.h"

namespace accrue::test {

/// Changes manifest.json of a checkpoint's folder and updates its hash.
void resign_manifest(const std::filesystem::path& folder, const std::function<void(nlohmann::ordered_json&)>& change);
/// The text of a manifest with a correct hash, from its other members as compact JSON: "{...}".
std::string signed_manifest(const std::string& members);

/// Changes the tensors or the metadata of a checkpoint's file, and updates the manifest.
void rewrite_shard(const std::filesystem::path& folder, const std::string& file,
                   const std::function<void(Archive&)>& change);

}  // namespace accrue::test
