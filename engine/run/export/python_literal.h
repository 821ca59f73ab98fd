// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace accrue::export_detail {

/// A Python literal. Text is quoted and escaped, a number keeps every digit.
std::string python(std::string_view text);
std::string python(double number);
std::string python(bool flag);
template <typename List>
std::string python_list(const List& list) {
  std::string text = "[";
  for (const auto& each : list) text += (text.size() > 1 ? ", " : "") + python(each);
  return text + "]";
}

}  // namespace accrue::export_detail
