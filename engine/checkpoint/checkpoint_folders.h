// SPDX-License-Identifier: Apache-2.0
// The folders below <run>/checkpoints: committed, being written, and being removed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/checkpoint_mark.h"
#include "accrue/run/result.h"

namespace accrue {

std::filesystem::path checkpoints_dir(const std::filesystem::path& run_dir);
/// Committed checkpoints, newest first; none where there is no such folder. Errors (disk): it cannot be read, so nobody
/// knows.
Result<std::vector<std::string>> committed_checkpoints(const std::filesystem::path& run_dir);

/// A folder ".step-N.<token>.part", new and empty. Errors: disk.
Result<std::filesystem::path> make_part_folder(const std::filesystem::path& run_dir, const CheckpointMark& mark);
/// A disk error in the system's words (errno).
tl::unexpected<Error> disk_failure(const std::filesystem::path& path, const std::string& what, int error);
/// Writes a new file and syncs it. Errors: disk.
Result<void> write_synced(const std::filesystem::path& file, const std::string& text);
/// Syncs the part folder, renames it to its step and syncs the parent: the commit. An existing folder of that name
/// is never written into: it is first set aside as "replaced-step-N". Errors: disk.
Result<void> commit_folder(const std::filesystem::path& part, const std::string& name);
/// Removes leftovers and outdated checkpoints: keeps the `keep` newest (never fewer than two) and the newest finite
/// one. The newest must verify before anything goes. Errors (disk): it does not read back as it was written.
Result<void> retain_checkpoints(const std::filesystem::path& run_dir, std::int64_t keep);

}  // namespace accrue
