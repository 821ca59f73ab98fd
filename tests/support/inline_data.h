// SPDX-License-Identifier: Apache-2.0
// Data of a spec that its text holds, as lists of lists of numbers.
#pragma once

#include <limits>
#include <sstream>
#include <string>

namespace accrue::test {

/// "[[a, b], [c]]": `length(i)` numbers in row i, `value(i, t)` at its place t; rows and places count from 0.
template <typename Length, typename Value>
std::string lists(int rows, const Length& length, const Value& value) {
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  text << "[";
  for (int i = 0; i < rows; ++i) {
    text << (i ? ", [" : "[");
    for (int t = 0; t < length(i); ++t) text << (t ? ", " : "") << value(i, t);
    text << "]";
  }
  return text.str() + "]";
}

/// "[[a], [b], [c]]" of value(1), value(2), ...
template <typename Value>
std::string column(int rows, const Value& value) {
  return lists(
      rows, [](int) { return 1; }, [&](int i, int) { return value(i + 1); });
}

}  // namespace accrue::test
