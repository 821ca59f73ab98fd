// SPDX-License-Identifier: Apache-2.0
// Folders below <run>/checkpoints: committed ones, one being written, and ones being removed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/window/checkpoint_mark.h"

namespace accrue {

std::filesystem::path checkpoints_dir(const std::filesystem::path& run_dir);
/// Returns committed checkpoints, newest first; none if the folder does not exist. Errors (disk): it cannot be read.
Result<std::vector<std::string>> committed_checkpoints(const std::filesystem::path& run_dir);

/// Makes a new empty folder ".step-N.<token>.part". Errors: disk.
Result<std::filesystem::path> make_part_folder(const std::filesystem::path& run_dir, const CheckpointMark& mark);
/// Makes a disk error with the system's text (errno).
tl::unexpected<Error> disk_failure(const std::filesystem::path& path, const std::string& what, int error);
/// Writes a new file and syncs it. Errors: disk.
Result<void> write_synced(const std::filesystem::path& file, const std::string& text);
/// Commits: syncs the part folder, renames it to its step and syncs the parent. An existing folder of that name is
/// never written into, but first set aside as "replaced-step-N". Errors: disk.
Result<void> commit_folder(const std::filesystem::path& part, const std::string& name);
/// Removes remains and outdated checkpoints. Keeps the `keep` newest (at least two), the newest finite one and the best
/// one. The newest must verify before anything is removed. Errors (disk): it does not read back as it was written.
Result<void> retain_checkpoints(const std::filesystem::path& run_dir, std::int64_t keep);

}  // namespace accrue
