// SPDX-License-Identifier: Apache-2.0
// The logs of other tools as run folders, which are shown and compared like others. An imported run was not trained
// here: it has no plan, no checkpoint and no spans, its spec holds its name alone, and its record says where it comes
// from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "accrue/run/result.h"
#include "accrue/run/run_log.h"

namespace accrue {

/// What stands for what.
struct ImportTags {
  std::string loss;
  std::string lr;
  std::string grad_norm;
  std::string evaluation;
  std::int64_t batch = 0;  ///< samples of an update, where the log does not say; 0: not known
};
/// What the user says of it. A tag that is left out, or that a run does not have, is found by its usual names.
struct GivenTags {
  std::vector<std::string> loss = {};  ///< of a run the first that it has
  std::string lr = {};
  std::string grad_norm = {};
  std::string evaluation = {};
  std::int64_t batch = 0;
};

struct ImportChoice {
  ImportTags tags;                   ///< found or given; empty where there is none
  std::vector<std::string> ignored;  ///< the log's other tags
  std::vector<std::string> notes;    ///< what the imported run does not know
};
/// Pure. Errors (config): a chosen column that holds a field that is no number, by line and column; no tag that is
/// known for a loss, with those that are there and without a place.
Result<ImportChoice> choose_tags(const RunLog& log, const GivenTags& given);

/// Where run folders go.
struct ImportPlace {
  std::filesystem::path runs_dir;
  std::string name;  ///< of the folder of a single run; empty: one that is free, after the log
};
/// The place of a folder that is named itself. Errors: as absolute_folder.
Result<ImportPlace> import_place_of(const std::filesystem::path& run_dir);

struct ImportedRun {
  std::filesystem::path dir;
  ImportChoice choice;
  std::vector<std::string> problems;  ///< of its log
};
/// Makes the folders of finished runs, named after the logs: of all, or none. They are written beside their places and
/// are there once all are whole; what a killed import left there is gone. Errors: as choose_tags(), naming the run of
/// several, and as RunWriter::create; a given tag that no log has, a folder that is there and not empty, several runs
/// for one folder (config); go_on, which is asked now and then, said false (cancelled).
Result<std::vector<ImportedRun>> import_logs(std::vector<RunLog> logs, const std::filesystem::path& from,
                                             const ImportPlace& place, const GivenTags& given,
                                             const std::function<bool()>& go_on = {});

}  // namespace accrue
