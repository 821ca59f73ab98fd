// SPDX-License-Identifier: Apache-2.0
// Values as texts: environment variables and "name = value" have nothing else.
#pragma once

#include <optional>
#include <string_view>

#include "accrue/run/spec_fields.h"

namespace accrue::megatron_detail {

/// The text as a value of that type, as Python or TOML spell it; nothing where it is of another type. Truth is spelt
/// as Accelerate reads it: true, yes, y, t, on, 1 and their opposites, in any case.
std::optional<SpecValue> parse_value(FieldType type, std::string_view text);

inline bool is_none(const SpecValue& value) {
  return std::holds_alternative<std::monostate>(value);
}

}  // namespace accrue::megatron_detail
