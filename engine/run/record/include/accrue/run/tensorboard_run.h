// SPDX-License-Identifier: Apache-2.0
// A run's record as event files of TensorBoard, and the scalars of such files as a run folder that is shown and
// compared like others. An imported run was not trained here: it has no plan, no checkpoint and no spans, its spec
// holds its name alone, and its record says where it comes from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "accrue/run/result.h"
#include "accrue/run/run_store.h"
#include "accrue/run/tensorboard_log.h"

namespace accrue {

struct ScalarsWritten {
  std::filesystem::path file;
  std::int64_t updates = 0;
  std::int64_t evaluations = 0;
};
/// Writes what the run would have written with run.tensorboard_dir, at the times of its updates; an evaluation without
/// an update at the time of the update before it. Errors: no run folder, a run without updates, a folder that holds
/// event files already (config); disk; go_on, which is asked at each update, said false (cancelled), which leaves no
/// file.
Result<ScalarsWritten> export_tensorboard(const std::filesystem::path& run_dir, const std::filesystem::path& folder,
                                          const std::function<bool()>& go_on = {});

/// What stands for what. A tag that is left out is found by its usual names.
struct ImportTags {
  std::string loss;
  std::string lr;
  std::string grad_norm;
  std::string evaluation;
  std::int64_t batch = 0;  ///< samples of an update, where the log does not say; 0: not known
};

struct ImportChoice {
  ImportTags tags;                   ///< found or given; empty where there is none
  std::vector<std::string> ignored;  ///< the log's other tags
  std::vector<std::string> notes;    ///< what the imported run does not know
};
/// Pure. Errors (config): a tag that is not in the log; no tag that is known for a loss, with those that are there.
Result<ImportChoice> choose_tags(const TensorboardLog& log, const ImportTags& given);

/// Makes the folder of a finished run, named after the log. Errors: as RunWriter::create; those above.
Result<ImportChoice> import_tensorboard(const TensorboardLog& log, const std::filesystem::path& from,
                                        const std::filesystem::path& run_dir, const ImportTags& given);

/// A folder in runs_dir that is not there yet, for the curves of a file or folder: two imports of it are two runs.
std::filesystem::path import_place(const std::filesystem::path& runs_dir, const std::filesystem::path& from);

/// Whether a run was imported: all that its spec knows is its name.
bool is_imported(const RunSummary& run);

}  // namespace accrue
