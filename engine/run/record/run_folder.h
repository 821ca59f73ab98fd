// SPDX-License-Identifier: Apache-2.0
// A run folder's entries: which checkpoint is newest, who may take the folder, what killed processes left in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "accrue/run/checkpoint_mark.h"
#include "accrue/run/result.h"
#include "accrue/run/run_plan.h"
#include "accrue/run/run_store.h"

namespace accrue {

/// The newest committed checkpoint; not valid if there is none. Whether it verifies is for the ranks to say.
CheckpointMark newest_checkpoint(const std::filesystem::path& run_dir);

/// The text of summary.json, which carries the hash of its contents.
std::string summary_record(const RunSummary& summary);
/// Of a run that has ended: makes summary.json where a kill kept it from being written, and clears what the kill left.
/// Errors: the folder is in use (config), cannot be written (disk).
Result<void> complete_record(const RunSummary& summary);

/// The spec with the place of its data in full, so that it means the same wherever it is read; and as spec.toml has it.
RunSpec located_spec(const RunPlan& plan);
std::string spec_as_run(const RunPlan& plan);

/// Makes the folder (mode 0700) where it does not exist; one that does must be a folder of this user and no link, and
/// is closed to writing by others. Errors: config, disk.
Result<void> make_own_folder(const std::filesystem::path& dir);
/// True where the folder holds nothing, or only what a start leaves that failed before its plan was written. Errors
/// (disk): it cannot be read.
Result<bool> is_free_folder(const std::filesystem::path& dir);
/// Errors: is_free_folder() says no (config), cannot be read (disk).
Result<void> check_free(const std::filesystem::path& dir);
/// Errors (config): the run came in a bundle, without its checkpoints.
Result<void> check_not_imported(const std::filesystem::path& dir);
/// Removes what is_free_folder() overlooks, but for run.lock. Needs the lock.
void clear_failed_start(const std::filesystem::path& dir);
/// Removes what killed processes left of files and checkpoints that they had not finished. Needs the lock.
void clear_leftovers(const std::filesystem::path& dir);

}  // namespace accrue
