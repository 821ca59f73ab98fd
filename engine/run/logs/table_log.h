// SPDX-License-Identifier: Apache-2.0
// Curves in a text table as logs: what the studio exports (a line for each point, with the run's id), a chart that W&B
// exports (a column for each run, with its __MIN and __MAX beside it), and tables of other tools (a column for each
// quantity). The first line names the columns; an empty field is a value that was not logged.
//
// The separator is a comma, a semicolon or a tab. A comma in a number is a decimal one where no number of the table has
// a point.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/result.h"
#include "accrue/run/run_log.h"

namespace accrue {

/// The runs of a table, in its order; at least one. `seconds`: since 1970, when the file was written; times in it that
/// begin near 0 count from there. A last row that is cut short is left out, with a sentence in the problems. Errors
/// (config): no header line, no column of steps, a step that is no whole number, a row of another width, a quote
/// without an end, each by line and column; more than 10,000 columns; no row; given up (cancelled).
Result<std::vector<RunLog>> parse_table_log(std::string_view text, const std::string& file_name, double seconds,
                                            const LogRequest& request = {});

/// Whether a text's first line has several columns, and the next one as many.
bool looks_like_table(std::string_view text);

}  // namespace accrue
