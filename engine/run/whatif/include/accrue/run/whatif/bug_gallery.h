// SPDX-License-Identifier: Apache-2.0
// Gallery of fifteen well-known bugs of gradient accumulation: the symptom, detector and cure of each, and a run that
// shows it.
#pragma once

#include <span>
#include <string_view>

#include "accrue/run/fields/spec.h"

namespace accrue {

struct GalleryBug {
  Bug bug = Bug::none;
  std::string_view title;     ///< "Mean of means"
  std::string_view symptom;   ///< what a user sees, in one line
  std::string_view detector;  ///< what detects it here
  std::string_view cure;      ///< change to a loop that has the bug
};

/// All fifteen, in the order of Bug.
std::span<const GalleryBug> bug_gallery();
/// Returns its row; nullptr for Bug::none.
const GalleryBug* find_gallery_bug(Bug bug);

/// Returns a short run that shows the bug, with the lamp on every update. Without the bug the same run is exact.
RunSpec gallery_spec(Bug bug);

/// Returns a sentence for a window that is exact although the run has the bug.
std::string_view explain_idle_window(Bug bug);

}  // namespace accrue
