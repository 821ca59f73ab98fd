// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace accrue::test {

inline bool near(double value, double expected, double tolerance = 1e-12) {
  return std::abs(value - expected) <= tolerance;
}

}  // namespace accrue::test
