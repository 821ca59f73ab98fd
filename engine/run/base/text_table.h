// SPDX-License-Identifier: Apache-2.0
// Rows and fields of a text table. The separator is a comma, semicolon or tab. Fields may have double quotes, which may
// contain line ends. White space around a field, blank lines and a byte-order mark are skipped. Lines may end as on any
// system. std::from_chars makes numbers independent of the locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

class TableRows {
 public:
  /// Chooses the separator that is most frequent in the first line. A comma between digits may be a decimal comma, and
  /// counts only if nothing else separates. Both texts must outlive the rows.
  TableRows(std::string_view text, const std::string& file, std::size_t most_columns);

  char separator() const { return separator_; }
  /// Reads the next row that is not blank; false at the end. Errors (config): an unclosed quote, text after a closing
  /// quote, more than most_columns columns.
  Result<bool> next(std::vector<std::string>& fields);
  /// Whether the newest row, or its error, lacks a line end: its writer may have been killed there.
  bool may_be_cut() const { return !ended_; }
  /// Place of the newest row, such as "file:12: column 3", or "file:12" without a column.
  std::string place(std::optional<std::size_t> column = {}) const;

 private:
  Result<void> take_row(std::vector<std::string>& fields);
  Result<std::string> take_quoted(std::size_t column);

  std::string_view text_;
  const std::string& file_;
  std::size_t most_columns_;
  char separator_ = ',';
  std::int64_t line_ = 1;
  std::int64_t row_line_ = 1;
  bool ended_ = true;  ///< the newest row has a line end
};

/// Parses a number with a decimal point, including non-finite ones.
std::optional<double> number_of(std::string_view field);
/// Whether such a number is too large or too small for a double.
bool is_out_of_range(std::string_view field);
/// Returns "2,5" as "2.5"; none if the text is not a number with one decimal comma.
std::optional<std::string> with_decimal_point(std::string_view field);

}  // namespace accrue
