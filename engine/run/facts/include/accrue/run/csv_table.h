// SPDX-License-Identifier: Apache-2.0
// A table in a csv file, as the planner counts it and the ranks train on it. Commas, semicolons or tabs separate, as
// the first line shows; a first line with a word beside the labels names the columns; blank lines and spaces around a
// cell are passed over, and quotes around it. All cells are numbers, but a label may be a word: then it is a class.
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
  std::int64_t validation_rows = 0;  ///< the last of them, which a file of their own holds
  std::int64_t inputs = 0;           ///< columns of x
  std::int64_t outputs = 0;          ///< columns of y
  std::vector<double> x;             ///< row-major [rows, inputs], columns in the file's order
  std::vector<double> y;             ///< row-major [rows, outputs], in the order of label_columns
  std::vector<std::string> columns;  ///< names of the header line; empty without one
  std::vector<std::string> classes;  ///< of a column of words: the words in the order of their bytes; y holds places
};

/// Parses a table. A label column is a name of the header line or a column's number from 1; without any, the last
/// column is the label. Errors (code data): no row, rows of unequal length, a cell that is not a finite number, an
/// unknown label column, no column left for x, words in one of several label columns, a quote that is not closed or
/// that text follows, more than a million columns, a first line that may be names or a row; each names line and column.
Result<CsvTable> parse_csv(std::string_view text, const std::vector<std::string>& label_columns,
                           const std::string& file_name);
/// The rows of a file and behind them those of a second one, which has the same columns and no class of its own; an
/// empty path stands for none. Errors (code data): those of parse_csv(), missing, unreadable, no text; of the second
/// file under data.validation_path.
Result<CsvTable> read_tables(const std::filesystem::path& file, const std::filesystem::path& validation,
                             const std::vector<std::string>& label_columns);

}  // namespace accrue
