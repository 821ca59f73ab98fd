// SPDX-License-Identifier: Apache-2.0
// The table of a data-driven test. In its _data function: `const Rows<QString, int> row;`, then `row("five updates",
// "run.updates=5", 5);` for each row; in the test: `const auto [settings, updates] = current_row<QString, int>();`.
#pragma once

#include <QTest>
#include <array>
#include <tuple>
#include <type_traits>
#include <utility>

namespace accrue::test {

/// Qt Test finds columns by name and keeps only the pointer to the name.
inline constexpr std::array column_names{"0", "1", "2", "3", "4", "5", "6", "7"};

template <typename... Cells>
class Rows {
 public:
  Rows() {
    std::size_t column = 0;
    (QTest::addColumn<Cells>(column_names.at(column++)), ...);
  }
  void operator()(const char* name, const std::type_identity_t<Cells>&... cells) const {
    (QTest::newRow(name) << ... << cells);
  }
};

template <typename... Cells>
std::tuple<Cells...> current_row() {
  return [&]<std::size_t... column>(std::index_sequence<column...>) {
    return std::tuple<Cells...>(
        *static_cast<const Cells*>(QTest::qData(std::to_string(column).c_str(), qMetaTypeId<Cells>()))...);
  }
  (std::index_sequence_for<Cells...>());
}

}  // namespace accrue::test
