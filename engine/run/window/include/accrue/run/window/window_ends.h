// SPDX-License-Identifier: Apache-2.0
// Iteration over the updates of a plan, for callers that ignore micro-steps.
#pragma once

#include <optional>

#include "accrue/run/window/accumulation_window.h"

namespace accrue {

/// Advances to the next micro-step that updates, as if next() had been called up to it; none if the run ends before.
/// The cost does not depend on the window's size.
std::optional<MicroPlan> next_update(AccumulationWindow& window);

}  // namespace accrue
