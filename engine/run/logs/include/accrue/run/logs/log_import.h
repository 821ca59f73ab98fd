// SPDX-License-Identifier: Apache-2.0
// Logs of other tools as run folders, which are shown and compared like others. An imported run was not trained here:
// it has no plan, no checkpoint and no spans, its spec contains only its name, and its record names its source.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/logs/run_log.h"

namespace accrue {

/// Tags of a log by their meaning.
struct ImportTags {
  std::string loss;
  std::string lr;
  std::string grad_norm;
  std::string evaluation;
  std::int64_t batch = 0;  ///< samples of an update if the log does not say; 0: unknown
};
/// Tags that the user gives. A tag that is left out, or that a run lacks, is found by its usual names.
struct GivenTags {
  std::vector<std::string> loss = {};  ///< the first one that a run has
  std::string lr = {};
  std::string grad_norm = {};
  std::string evaluation = {};
  std::int64_t batch = 0;
};

struct ImportChoice {
  ImportTags tags;                   ///< found or given; may be empty
  std::vector<std::string> ignored;  ///< the log's other tags
  std::vector<std::string> notes;    ///< what the imported run lacks
};
/// Pure. Errors (config): a chosen column has a field that is not a number, with line and column; no tag is a known
/// loss, with the available ones and without a place.
Result<ImportChoice> choose_tags(const RunLog& log, const GivenTags& given);

/// Destination of run folders.
struct ImportPlace {
  std::filesystem::path runs_dir;
  std::string name;  ///< folder name of a single run; empty: a free one, named after the log
};
/// Returns the place of a given run folder. Errors: as absolute_folder.
Result<ImportPlace> import_place_of(const std::filesystem::path& run_dir);

struct ImportedRun {
  std::filesystem::path dir;
  ImportChoice choice;
  std::vector<std::string> problems;  ///< of its log
};
/// Makes the folders of finished runs, named after the logs: all or none. They are written to temporary names and
/// renamed when all are complete; remains of a killed import are removed. Errors: as choose_tags(), with the name of
/// the run if there are several, and as RunWriter::create; a given tag that no log has, a folder that exists and is not
/// empty, several runs for one folder (config); cancelled if go_on, which is called now and then, returned false.
Result<std::vector<ImportedRun>> import_logs(std::vector<RunLog> logs, const std::filesystem::path& from,
                                             const ImportPlace& place, const GivenTags& given,
                                             const std::function<bool()>& go_on = {});

}  // namespace accrue
