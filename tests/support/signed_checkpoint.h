// SPDX-License-Identifier: Apache-2.0
// Damage that hashes do not show: what a checkpoint says is changed, and its hashes are made to agree. So a test gets
// past them to the checks behind.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "accrue/checkpoint/tensor_archive.h"

namespace accrue::test {

/// Changes manifest.json of a checkpoint's folder and signs it anew.
void resign_manifest(const std::filesystem::path& folder, const std::function<void(nlohmann::ordered_json&)>& change);
/// The text of a manifest with a right hash, from its members without one, as compact JSON: "{...}".
std::string signed_manifest(const std::string& members);

/// Changes the tensors, or the metadata, of a file of a checkpoint, and makes the manifest agree.
void rewrite_shard(const std::filesystem::path& folder, const std::string& file,
                   const std::function<void(Archive&)>& change);

}  // namespace accrue::test
