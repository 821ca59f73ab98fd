// SPDX-License-Identifier: Apache-2.0
// Names inside a run folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "accrue/run/result.h"

namespace accrue {

/// "step-<n>" of the newest committed checkpoint, empty if there is none. Whether it verifies is for the ranks to say.
std::string newest_checkpoint(const std::filesystem::path& run_dir);
/// The update of "step-<n>"; -1 for any other name.
std::int64_t checkpoint_update_of(const std::string& name);
/// Renames the checkpoints after an update to "abandoned-step-<n>", for a run that goes back to before them: whatever
/// is newest then is of the branch that trains on. Needs the run's lock. Returns how many. Errors: disk.
Result<int> abandon_checkpoints_after(const std::filesystem::path& run_dir, std::int64_t update);

}  // namespace accrue
