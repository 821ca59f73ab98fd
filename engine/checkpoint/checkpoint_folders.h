// SPDX-License-Identifier: Apache-2.0
// The folders below <run>/checkpoints: committed ones, the one being written, and what is on its way out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/checkpoint_mark.h"
#include "accrue/run/result.h"

namespace accrue {

std::filesystem::path checkpoints_dir(const std::filesystem::path& run_dir);
/// Committed checkpoints, newest first.
std::vector<std::string> committed_checkpoints(const std::filesystem::path& run_dir);

/// A folder ".step-N.<token>.part", new and empty. Errors: disk.
Result<std::filesystem::path> make_part_folder(const std::filesystem::path& run_dir, const CheckpointMark& mark);
/// Writes a new file and syncs it. Errors: disk.
Result<void> write_synced(const std::filesystem::path& file, const std::string& text);
/// Syncs the part folder, renames it to its step and syncs the parent: the commit. A folder of that name (left by a
/// continuation that was given up) is set aside first. Errors: disk.
Result<void> commit_folder(const std::filesystem::path& part, const std::string& name);
/// Removes unfinished and outdated folders: keeps the `keep` newest (never fewer than two) and the newest finite one.
/// The newest must verify before anything goes; what cannot be removed is left for the next time.
/// Errors (disk): the newest does not read back as it was written.
Result<void> retain_checkpoints(const std::filesystem::path& run_dir, std::int64_t keep);

}  // namespace accrue
