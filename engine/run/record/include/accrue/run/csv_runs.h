// SPDX-License-Identifier: Apache-2.0
// Curves in a csv file as runs: what the studio exports (a line for each point, with the run's id), and tables of other
// tools (a column for each quantity). The first line names the columns. A field may stand in double quotes; an empty
// one is a value that was not logged.
//
// Of a table, one column has to say the step: update, step, global_step, iteration, iter, updates or steps. "seconds"
// and its like say the time, "samples" and its like the samples trained on, in any case of letters.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/result.h"
#include "accrue/run/tensorboard_run.h"

namespace accrue {

struct CsvRun {
  std::string id;                   ///< empty in a table of another tool
  TensorboardLog log;               ///< a scalar for each column or quantity
  std::map<std::string, Error> no;  ///< of a column that cannot be a scalar: its first field that is not a number
};

/// The runs of a file, in its order; at least one. `seconds`: since 1970, when the file was written; times in it that
/// begin near 0 count from there. go_on is asked now and then; false ends it. Errors (config): no header line, no
/// column of steps, a step that is no whole number, a row of another width, a quote without an end, each by line and
/// column; more than 10,000 columns; no row; go_on said false (cancelled).
Result<std::vector<CsvRun>> parse_csv_runs(std::string_view text, const std::string& file_name, double seconds,
                                           const std::function<bool()>& go_on = {});
/// Reads and parses a file of at most 256 MiB. Further errors: missing or larger (config), unreadable (disk).
Result<std::vector<CsvRun>> read_csv_runs(const std::filesystem::path& file, const std::function<bool()>& go_on = {});

/// Makes the folder of a finished run, like import_tensorboard(). Further errors (config): a chosen column holds a
/// field that is no number, by line and column.
Result<ImportChoice> import_csv(CsvRun run, const std::filesystem::path& from, const std::filesystem::path& run_dir,
                                const ImportTags& given);

struct ImportedCurves {
  std::filesystem::path dir;
  ImportChoice choice;
  std::vector<std::string> problems;  ///< of its columns
};
/// Makes the folders of all runs of a file, or none: each is checked before the first is written, and after an error
/// the folders that were made are gone. `place` says, before each is written, where it goes. Errors: as import_csv(),
/// naming the run of several; go_on, which is asked before each run, said false (cancelled).
Result<std::vector<ImportedCurves>> import_csv_runs(std::vector<CsvRun> runs, const std::filesystem::path& from,
                                                    const std::function<std::filesystem::path()>& place,
                                                    const ImportTags& given, const std::function<bool()>& go_on = {});

}  // namespace accrue
