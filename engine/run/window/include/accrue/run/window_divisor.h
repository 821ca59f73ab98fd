// SPDX-License-Identifier: Apache-2.0
// MMEngine's divisor, for whoever divides at the boundary what the plan would have divided as it went.
#pragma once

#include <cstdint>

#include "accrue/run/accumulation_window.h"

namespace accrue {

/// N, and in the last iterations before max_iters, which fill no window, as many as they are (K5 run_remainder).
/// `after`: where the window stands after the micro-step; `steps`: N of its window.
std::int64_t run_remainder_divisor(const WindowShape& shape, const WindowPosition& after, std::int64_t steps);

}  // namespace accrue
