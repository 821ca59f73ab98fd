// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

namespace accrue {

inline bool is_half(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16;
}
/// What updates of such parameters are computed in: of half precision, float32 copies are updated (masters).
inline at::ScalarType update_type(at::ScalarType own) {
  return is_half(own) ? at::kFloat : own;
}

}  // namespace accrue
