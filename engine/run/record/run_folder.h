// SPDX-License-Identifier: Apache-2.0
// Names inside a run folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "accrue/run/checkpoint_mark.h"
#include "accrue/run/result.h"

namespace accrue {

/// The newest committed checkpoint; not valid if there is none. Whether it verifies is for the ranks to say.
CheckpointMark newest_checkpoint(const std::filesystem::path& run_dir);
/// Renames the checkpoints after a mark to "abandoned-<name>", for a run that goes back to before them: whatever is
/// newest then is of the branch that trains on. Needs the run's lock. Returns how many. Errors: disk.
Result<int> abandon_checkpoints_after(const std::filesystem::path& run_dir, const CheckpointMark& mark);

}  // namespace accrue
