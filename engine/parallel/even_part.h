// SPDX-License-Identifier: Apache-2.0
// Share of a dim on each rank of a tensor axis.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "accrue/parallel/tensor_axis.h"

namespace accrue {

/// Errors: throws std::invalid_argument if the parts would be unequal.
inline std::int64_t even_part(std::int64_t size, const TensorAxis& axis, const char* what) {
  if (size % axis.size() == 0) return size / axis.size();
  throw std::invalid_argument(std::to_string(size) + " " + what + " cannot be divided evenly over " +
                              std::to_string(axis.size()) + " tensor-parallel ranks");
}

/// Number of classes for which a rank has logits, if each rank holds `each` rows of a table that may have more rows
/// than classes.
inline std::int64_t classes_on_rank(std::int64_t each, std::int64_t classes, const TensorAxis& axis) {
  return std::clamp<std::int64_t>(classes - axis.rank() * each, 0, each);
}

}  // namespace accrue
