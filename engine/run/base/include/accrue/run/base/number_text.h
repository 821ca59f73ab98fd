// SPDX-License-Identifier: Apache-2.0
// Numbers and lists as text, in one form for all messages and reports.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace accrue {

namespace number_text_detail {
std::string format_bytes(double bytes);
}

/// "512 B", "12.3 MiB": one decimal from a KiB on, so that the numbers of a column line up.
template <typename Number>
std::string format_bytes(Number bytes) {
  return number_text_detail::format_bytes(static_cast<double>(bytes));
}

/// Separates groups of three digits of a decimal number's integer part: "-12,345.5".
std::string grouped(std::string_view number, std::string_view separator = ",");
inline std::string grouped(std::int64_t number) {
  return grouped(std::to_string(number));
}

/// Joins the elements of a list, or what `word` makes of each: "a, b, c". Words are texts or whole numbers.
template <typename List, typename Word = std::identity>
std::string joined(const List& list, std::string_view separator = ", ", Word word = {}) {
  std::string text;
  bool first = true;
  for (const auto& each : list) {
    if (!first) text += separator;
    first = false;
    if constexpr (std::integral<std::remove_cvref_t<std::invoke_result_t<Word&, decltype(each)>>>)
      text += std::to_string(std::invoke(word, each));
    else
      text += std::invoke(word, each);
  }
  return text;
}

/// Joins the first `most` elements and counts the others: "a, b and 3 more".
template <typename Element, typename Word = std::identity>
std::string joined_up_to(std::size_t most, const std::vector<Element>& list, Word word = {}) {
  const std::size_t shown = std::min(most, list.size());
  const std::string text = joined(std::span(list).first(shown), ", ", word);
  return shown == list.size() ? text : text + " and " + std::to_string(list.size() - shown) + " more";
}

}  // namespace accrue
