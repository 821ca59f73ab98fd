// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "train/training.h"

namespace accrue {

/// Whether an evaluation is due at this update.
bool evaluation_due(const Training& training, std::int64_t update);

/// Evaluates the mean loss over validation micro-batches; the first rank reports it. Returns it, equal on all ranks;
/// none if there was nothing to evaluate. Changes no training state: no gradient and no counter; dropout's mode is
/// restored, and its generator is keyed by micro-step anyway. Collective: the axis.
std::optional<double> evaluate(Training& training);

}  // namespace accrue
