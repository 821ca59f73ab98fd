// SPDX-License-Identifier: Apache-2.0
// A table of numbers in a csv file, as the planner counts it and the ranks train on it. Commas separate, a first line
// with a word in it names the columns, blank lines and spaces around a number are passed over. There is no
// quoting: a table of numbers needs none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/result.h"

namespace accrue {

struct CsvTable {
  std::int64_t rows = 0;
  std::int64_t inputs = 0;           ///< columns of x
  std::int64_t outputs = 0;          ///< columns of y
  std::vector<double> x;             ///< row-major [rows, inputs], columns in the file's order
  std::vector<double> y;             ///< row-major [rows, outputs], in the order of label_columns
  std::vector<std::string> columns;  ///< names of the header line; empty without one
};

/// Parses a table. A label column is a name of the header line or a column's number from 1; without any, the last
/// column is the label. Errors (code data): no row, rows of unequal length, a cell that is not a finite number, an
/// unknown label column, no column left for x; each names line and column.
Result<CsvTable> parse_csv(std::string_view text, const std::vector<std::string>& label_columns,
                           const std::string& file_name);
/// Reads and parses a file. Further errors (code data): missing, unreadable, empty.
Result<CsvTable> read_csv(const std::filesystem::path& file, const std::vector<std::string>& label_columns);

}  // namespace accrue
