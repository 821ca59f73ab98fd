// SPDX-License-Identifier: Apache-2.0
// Memory that this rank holds and bytes it has sent, to compare with the plan (event "measured").
#pragma once

#include "train/training.h"

namespace accrue {

/// Call after each boundary: reports once the first full windows have covered everything countable, and then stops
/// counting the memory of forwards.
void measure_window(Training& training);
/// Reports the current memory and the bytes sent so far; does nothing if no full window was trained. Collective: the
/// data axis.
void report_measured(Training& training);

}  // namespace accrue
