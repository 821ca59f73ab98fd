// SPDX-License-Identifier: Apache-2.0
// Text for numbers that JSON cannot express, as all files of a run write them.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

namespace accrue {

/// Returns "nan", "inf" or "-inf" for a value that is not finite.
inline std::string_view non_finite_name(double value) {
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/// Returns the value of such a name; none for any other text.
inline std::optional<double> non_finite_value(std::string_view name) {
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

}  // namespace accrue
