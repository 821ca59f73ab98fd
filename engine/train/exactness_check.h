// SPDX-License-Identifier: Apache-2.0
// The lamp's measurement: what a window brought to its update against the gradient of the same samples in one batch.
#pragma once

#include "train/training.h"

namespace accrue {

/// Whether a check falls on the update that this window ends in.
bool exactness_due(const Training& training, const WindowPass& pass);

/// Compares and reports. `factor` is what the update will multiply the reduced gradient by. Takes one pass over the
/// window's samples in one batch, and one more micro-step by micro-step only where something is to be explained;
/// gradients, counters and generators are afterwards as they were. Collective: the axis.
void check_exactness(Training& training, const WindowPass& pass, double factor);

}  // namespace accrue
