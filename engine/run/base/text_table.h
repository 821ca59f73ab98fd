// SPDX-License-Identifier: Apache-2.0
// Rows and fields of a text table: separated by comma, semicolon or tab, with or without double quotes, which may hold
// ends of lines. White space around a field, blank lines and a byte-order mark are passed over; a line ends as it does
// on any system. std::from_chars reads numbers the same in every locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/result.h"

namespace accrue {

class TableRows {
 public:
  /// The separator is the one that the first line has most of; a comma between digits may be a decimal one and counts
  /// where nothing else separates. Both texts outlive the rows.
  TableRows(std::string_view text, const std::string& file, std::size_t most_columns);

  char separator() const { return separator_; }
  /// The next row that is not blank; false at the end. Errors (config): a quote without an end, text behind one that
  /// has ended, more columns than most_columns.
  Result<bool> next(std::vector<std::string>& fields);
  /// Whether no end of line follows the newest row, or its error: the writer may have been killed there.
  bool may_be_cut() const { return !ended_; }
  /// "file:12: column 3" of the newest row; without a column "file:12".
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
  bool ended_ = true;  ///< the newest row, by an end of line
};

/// The number that a field is, with a decimal point; not finite ones, too.
std::optional<double> number_of(std::string_view field);
/// Of such a number that is no double: too large, or too small.
bool is_out_of_range(std::string_view field);
/// "2,5" as "2.5"; none for anything that is no number with one decimal comma.
std::optional<std::string> with_decimal_point(std::string_view field);

}  // namespace accrue
