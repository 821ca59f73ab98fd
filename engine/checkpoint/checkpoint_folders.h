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
/// Committed checkpoints, newest first.
std::vector<std::string> committed_checkpoints(const std::filesystem::path& run_dir);

/// A folder ".step-N.<token>.part", new and empty. Errors: disk.
Result<std::filesystem::path> make_part_folder(const std::filesystem::path& run_dir, const CheckpointMark& mark);
/// Writes a new file and syncs it. Errors: disk.
Result<void> write_synced(const std::filesystem::path& file, const std::string& text);
/// Syncs the part folder, renames it to its step and syncs the parent: the commit. An existing folder of that name (one
/// that was refused, or left by an abandoned continuation) is first set aside under a name that put_back_replaced()
/// recognises. Errors: disk; the existing folder then keeps its name.
Result<void> commit_folder(const std::filesystem::path& part, const std::string& name);
/// After a kill in the middle of a commit: a folder that was set aside and has no successor gets its name back.
void put_back_replaced(const std::filesystem::path& run_dir);
/// Removes folders that are unfinished, discarded or replaced. Those that cannot be removed stay until the next call.
void remove_leftovers(const std::filesystem::path& run_dir);
/// Removes leftovers and outdated checkpoints: keeps the `keep` newest (never fewer than two) and the newest finite
/// one. The newest must verify before anything goes. Errors (disk): it does not read back as it was written.
Result<void> retain_checkpoints(const std::filesystem::path& run_dir, std::int64_t keep);

}  // namespace accrue
