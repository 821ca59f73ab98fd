// SPDX-License-Identifier: Apache-2.0
// How much of a dim each rank of a tensor axis holds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "accrue/parallel/tensor_axis.h"

namespace accrue {

/// Errors: throws std::invalid_argument where the ranks would hold unequal parts.
inline std::int64_t even_part(std::int64_t size, const TensorAxis& axis, const char* what) {
  if (size % axis.size() == 0) return size / axis.size();
  throw std::invalid_argument(std::to_string(size) + " " + what + " cannot be divided evenly over " +
                              std::to_string(axis.size()) + " tensor-parallel ranks");
}

/// How many classes a rank has logits of, where each holds `each` rows of a table that may have more rows than classes.
inline std::int64_t classes_on_rank(std::int64_t each, std::int64_t classes, const TensorAxis& axis) {
  return std::clamp<std::int64_t>(classes - axis.rank() * each, 0, each);
}

}  // namespace accrue
