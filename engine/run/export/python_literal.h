// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "accrue/run/base/number_text.h"

namespace accrue::export_detail {

/// A Python literal. Text is quoted and escaped, a number keeps every digit.
std::string python(std::string_view text);
std::string python(double number);
std::string python(bool flag);
template <typename List>
std::string python_list(const List& list) {
  return "[" + joined(list, ", ", [](const auto& each) { return python(each); }) + "]";
}

}  // namespace accrue::export_detail
