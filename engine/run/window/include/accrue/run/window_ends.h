// SPDX-License-Identifier: Apache-2.0
// From update to update through a plan, for what looks at updates alone.
#pragma once

#include <optional>

#include "accrue/run/accumulation_window.h"

namespace accrue {

/// The next micro-step that updates, as if next() had been called up to it; nothing where the run ends before. Costs as
/// much for a window of a million micro-steps as for one of ten.
std::optional<MicroPlan> next_update(AccumulationWindow& window);

}  // namespace accrue
