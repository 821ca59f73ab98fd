// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "accrue/run/window/checkpoint_mark.h"

namespace accrue {

struct BestCheckpoint {
  CheckpointMark mark;
  double loss = 0.0;  ///< of the evaluation after its update
};

/// The checkpoint that a run keeps for its loss (checkpoint.best), by its newest manifest whose best one is still
/// there. What a branch copied does not count.
std::optional<BestCheckpoint> best_checkpoint(const std::filesystem::path& run_dir);

/// Parses the name of a checkpoint, which may be "best"; invalid if there is no such name or no best one.
CheckpointMark named_checkpoint(const std::filesystem::path& run_dir, std::string_view name);

}  // namespace accrue
