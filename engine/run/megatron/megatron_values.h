// SPDX-License-Identifier: Apache-2.0
// Values as texts, the only form of environment variables and "name = value".
#pragma once

#include <optional>
#include <string_view>

#include "accrue/run/fields/spec_fields.h"

namespace accrue::megatron_detail {

/// Parses a value of that type in Python or TOML spelling; none if the text has another type. Booleans are spelled as
/// in Accelerate: true, yes, y, t, on, 1 and their opposites, in any case.
std::optional<SpecValue> parse_value(FieldType type, std::string_view text);

inline bool is_none(const SpecValue& value) {
  return std::holds_alternative<std::monostate>(value);
}

}  // namespace accrue::megatron_detail
