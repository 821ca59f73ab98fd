// SPDX-License-Identifier: Apache-2.0
// What this rank holds and has sent, for the figures beside the plan's (event "measured").
#pragma once

#include "train/training.h"

namespace accrue {

/// After each boundary: reports once the first full windows have shown everything there is to count, and ends the
/// counting of what forwards keep.
void measure_window(Training& training);
/// Reports what is held, and sent so far; nothing where no full window was trained. Collective: the data axis.
void report_measured(Training& training);

}  // namespace accrue
