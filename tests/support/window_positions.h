// SPDX-License-Identifier: Apache-2.0
// Positions of windows that no window was moved to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>

#include "accrue/run/window/accumulation_window.h"

/// Fields that are not named are 0.
inline accrue::WindowPosition made_position(const std::map<std::string, std::int64_t>& fields) {
  accrue::WindowPosition position;
  accrue::for_each_field(position, [&](const char* name, auto& value) {
    if (const auto field = fields.find(name); field != fields.end())
      value = static_cast<std::remove_reference_t<decltype(value)>>(field->second);
  });
  return position;
}

/// Every field differs from that of another, and from none.
inline accrue::WindowPosition numbered_position() {
  accrue::WindowPosition position;
  std::int64_t number = 0;
  accrue::for_each_field(position, [&](const char*, auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(++number);
  });
  return position;
}
