// SPDX-License-Identifier: Apache-2.0
// Numbers in JSON, finite or not.
#pragma once

#include <optional>

#include "accrue/run/base/non_finite.h"
#include "json_text.h"

namespace accrue {

inline Json json_number(double value) {
  return std::isfinite(value) ? Json(value) : Json(non_finite_name(value));
}

/// Returns none if the member is neither a number nor the name of one.
template <typename Json>
std::optional<double> read_json_number(const Json& json) {
  if (json.is_number()) return json.template get<double>();
  if (json.is_string()) return non_finite_value(json.template get_ref<const std::string&>());
  return std::nullopt;
}

}  // namespace accrue
