// SPDX-License-Identifier: Apache-2.0
// Names in a run's folders that are neither records nor checkpoints. Remains of killed processes are removed:
// ".NAME.part" was unfinished, ".trash-NAME" was being removed. Checkpoints that were set aside are kept for the user:
// "refused-step-N" could not be used, "abandoned-step-N" comes after the checkpoint to which a run went back,
// "replaced-step-N" lost its name to another.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/window/checkpoint_mark.h"

namespace accrue {

bool is_leftover(std::string_view name);
/// Removes the remains in a folder. What cannot be removed stays for the next time. Requires the run's lock, or rank 0
/// of its ranks.
void clear_leftovers_in(const std::filesystem::path& folder);

/// Renames a checkpoint from NAME to "REASON-NAME", or to "REASON-NAME.2" and so on if that exists. Returns the new
/// name. Errors: disk.
Result<std::string> set_aside(const std::filesystem::path& checkpoint, std::string_view reason);
/// Sets aside all checkpoints of a run after a mark. Returns their new names. Errors: disk.
Result<std::vector<std::string>> set_aside_after(const std::filesystem::path& run_dir, const CheckpointMark& mark,
                                                 std::string_view reason);

}  // namespace accrue
