// SPDX-License-Identifier: Apache-2.0
// Place of a checkpoint and the name of its folder: "step-100" on a boundary, "step-100+3" three micro-steps into the
// window after it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "accrue/run/fields/accumulation_knobs.h"

namespace accrue {

struct CheckpointMark {
  std::int64_t update = -1;   ///< updates done; -1: no checkpoint
  std::int64_t position = 0;  ///< micro-steps of the open window
  bool valid() const { return update >= 0; }
  auto operator<=>(const CheckpointMark&) const = default;
};

std::string checkpoint_name(const CheckpointMark& mark);
/// Parses a folder name; any other name gives an invalid mark.
CheckpointMark checkpoint_mark(std::string_view name);

/// Whether a run that is resumed inside a window updates at the same micro-steps as the uninterrupted run, even if the
/// window's gradients were lost. MMEngine saves neither gradients nor a count, but counts by its runner's iteration,
/// which it saves (unless restart_count is replayed).
bool keeps_place_in_window(const AccumulationKnobs& knobs);

}  // namespace accrue
