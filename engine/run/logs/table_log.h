// SPDX-License-Identifier: Apache-2.0
// Curves in a text table as logs: the studio's export (a line per point, with the run's id), a chart export of W&B (a
// column per run, with its __MIN and __MAX beside it), and tables of other tools (a column per quantity). The first
// line names the columns; an empty field is a value that was not logged.
//
// The separator is a comma, a semicolon or a tab. A comma in a number is a decimal comma if no number of the table has
// a point.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/logs/run_log.h"

namespace accrue {

/// Returns the runs of a table in its order; at least one. `seconds`: the file's time since 1970; times that begin near
/// 0 are relative to it. An incomplete last row is skipped, with a sentence in the problems. Errors (config), with line
/// and column: no header line, no column of steps, a step that is not an integer, a row of another width, an unclosed
/// quote; also more than 10,000 columns; no row; cancelled.
Result<std::vector<RunLog>> parse_table_log(std::string_view text, const std::string& file_name, double seconds,
                                            const LogRequest& request = {});

/// Whether a text's first line has several columns, and the next line the same number.
bool looks_like_table(std::string_view text);

}  // namespace accrue
