// SPDX-License-Identifier: Apache-2.0
// Entries of a run folder: the newest checkpoint, ownership, and remains of killed processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/plan/run_plan.h"
#include "accrue/run/record/run_store.h"
#include "accrue/run/window/checkpoint_mark.h"

namespace accrue {

/// Committed checkpoints, newest first. The ranks decide whether they verify.
std::vector<CheckpointMark> checkpoints_of(const std::filesystem::path& run_dir);
/// The first of them; invalid if there is none.
CheckpointMark newest_checkpoint(const std::filesystem::path& run_dir);

/// Sets the newest checkpoint and the best one, as the folder has them.
void name_checkpoints(RunSummary& summary, const RunSpec& spec);

/// Text of summary.json, including the hash of its contents.
std::string summary_record(const RunSummary& summary);
/// Completes the folder of an ended run: writes summary.json if a kill prevented it, and removes remains. Errors: the
/// folder is in use (config), cannot be written (disk).
Result<void> complete_record(const RunSummary& summary);

/// The spec with absolute paths of its data, so that it means the same everywhere; this is the form in spec.toml.
RunSpec located_spec(const RunPlan& plan);
std::string spec_as_run(const RunPlan& plan);

/// Makes the folder (mode 0700) if it does not exist. An existing one must be this user's and not a link; others lose
/// write permission. Errors: config, disk.
Result<void> make_own_folder(const std::filesystem::path& dir);
/// Whether the folder is empty, or contains only the remains of a start that failed before its plan was written. Errors
/// (disk): it cannot be read.
Result<bool> is_free_folder(const std::filesystem::path& dir);
/// Errors: is_free_folder() is false (config), cannot be read (disk).
Result<void> check_free(const std::filesystem::path& dir);
/// Errors (config): the run came in a bundle, without its checkpoints.
Result<void> check_not_imported(const std::filesystem::path& dir);
/// Removes the files that is_free_folder() ignores, except run.lock. Requires the lock.
void clear_failed_start(const std::filesystem::path& dir);
/// Removes unfinished files and checkpoints of killed processes. Requires the lock.
void clear_leftovers(const std::filesystem::path& dir);

}  // namespace accrue
