// SPDX-License-Identifier: Apache-2.0
// Where a checkpoint was taken, and the name of its folder: "step-100" on a boundary, "step-100+3" three micro-steps
// into the window after it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "accrue/run/accumulation_knobs.h"

namespace accrue {

struct CheckpointMark {
  std::int64_t update = -1;   ///< updates done; -1: no checkpoint
  std::int64_t position = 0;  ///< micro-steps of the open window
  bool valid() const { return update >= 0; }
  auto operator<=>(const CheckpointMark&) const = default;
};

std::string checkpoint_name(const CheckpointMark& mark);
/// Not valid for any other name.
CheckpointMark checkpoint_mark(std::string_view name);

/// Whether a run that is resumed inside a window takes its updates where the uninterrupted run would, even if it has
/// lost the window's gradients. MMEngine saves neither gradients nor a count, but counts by its runner's iteration,
/// which is saved (unless restart_count is replayed).
bool keeps_place_in_window(const AccumulationKnobs& knobs);

}  // namespace accrue
