// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace accrue {

/// Returns the name of an enum value. `names` lists all values up to `last` in order, so a new value does not compile
/// without a name.
template <auto last, std::size_t count>
constexpr std::string_view name_of(decltype(last) value, const std::string_view (&names)[count]) {
  static_assert(count == static_cast<std::size_t>(last) + 1, "one name a value");
  return names[static_cast<std::size_t>(value)];
}

}  // namespace accrue
