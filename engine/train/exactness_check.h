// SPDX-License-Identifier: Apache-2.0
// Measurement for the lamp: a window's gradient against that of the same samples in one batch.
#pragma once

#include "train/training.h"

namespace accrue {

/// Whether a check is due at the update of this window.
bool exactness_due(const Training& training, const WindowPass& pass);

/// Compares and reports. `factor`: the update's multiplier of the reduced gradient. Takes one pass over the window's
/// samples in one batch, and a second one by micro-steps only if a difference needs an explanation. Gradients, counters
/// and generators are restored. Collective: the axis.
void check_exactness(Training& training, const WindowPass& pass, double factor);

}  // namespace accrue
