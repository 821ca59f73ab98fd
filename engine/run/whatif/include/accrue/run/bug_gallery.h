// SPDX-License-Identifier: Apache-2.0
// The gallery of fifteen bugs that gradient accumulation is known for: what one sees of each, what detects it, what
// cures it, and a run in which it acts.
#pragma once

#include <span>
#include <string_view>

#include "accrue/run/run_spec.h"

namespace accrue {

struct GalleryBug {
  Bug bug = Bug::none;
  std::string_view title;     ///< "Mean of means"
  std::string_view symptom;   ///< what its victims see, in one line
  std::string_view detector;  ///< what finds it here
  std::string_view cure;      ///< what to change in a loop that has it
};

/// All fifteen, in the order of Bug.
std::span<const GalleryBug> bug_gallery();
/// Its row; nullptr for Bug::none.
const GalleryBug* find_gallery_bug(Bug bug);

/// A short run in which the bug acts, with the lamp on every update. Without its bug the same run is exact.
RunSpec gallery_spec(Bug bug);

/// A sentence for a window that is exact although the run has the bug.
std::string_view explain_idle_window(Bug bug);

}  // namespace accrue
