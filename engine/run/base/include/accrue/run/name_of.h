// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace accrue {

/// The name of an enum's value. `names` holds those of all values up to the last, in their order, so a value that is
/// added does not compile without a name.
template <auto last, std::size_t count>
constexpr std::string_view name_of(decltype(last) value, const std::string_view (&names)[count]) {
  static_assert(count == static_cast<std::size_t>(last) + 1, "one name a value");
  return names[static_cast<std::size_t>(value)];
}

}  // namespace accrue
