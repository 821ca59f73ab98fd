// SPDX-License-Identifier: Apache-2.0
// A table in a CSV file, as the planner counts it and the ranks train on it. The first line decides whether commas,
// semicolons or tabs separate. A first line with a word outside the label columns names the columns. Blank lines,
// spaces around a cell and quotes around it are ignored. All cells are numbers, except that a label may be a word: then
// it is a class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

struct CsvTable {
  std::int64_t rows = 0;
  std::int64_t validation_rows = 0;  ///< the last of the rows, from a file of their own
  std::int64_t inputs = 0;           ///< columns of x
  std::int64_t outputs = 0;          ///< columns of y
  std::vector<double> x;             ///< row-major [rows, inputs], columns in the file's order
  std::vector<double> y;             ///< row-major [rows, outputs], in the order of label_columns
  std::vector<std::string> columns;  ///< names of the header line; empty without one
  std::vector<std::string> classes;  ///< for a column of words: the words in byte order; y holds their indices
};

/// Parses a table. A label column is a name of the header line or a column number from 1; by default the last column is
/// the label. Errors (code data), each with line and column: no row, rows of unequal length, a cell that is not a
/// finite number, an unknown label column, no column left for x, words in one of several label columns, an unclosed
/// quote or text after a quote, more than a million columns, a first line that may be names or a row.
Result<CsvTable> parse_csv(std::string_view text, const std::vector<std::string>& label_columns,
                           const std::string& file_name);
/// Returns the rows of a file, followed by those of a second one with the same columns and no new classes; an empty
/// path means none. Errors (code data): those of parse_csv(), missing, unreadable, not a text; for the second file
/// under data.validation_path.
Result<CsvTable> read_tables(const std::filesystem::path& file, const std::filesystem::path& validation,
                             const std::vector<std::string>& label_columns);

}  // namespace accrue
