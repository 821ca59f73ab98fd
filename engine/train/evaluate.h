// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/training.h"

namespace accrue {

/// Whether an evaluation falls on this update.
bool evaluation_due(const Training& training, std::int64_t update);

/// The mean loss over validation micro-batches, reported by the first rank. Touches no training state: no gradient, no
/// counter, dropout's mode is put back and its generator is keyed by micro-step anyway. Collective: the axis.
void evaluate(Training& training);

}  // namespace accrue
