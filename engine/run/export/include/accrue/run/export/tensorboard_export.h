// SPDX-License-Identifier: Apache-2.0
// A run's record as event files of TensorBoard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "accrue/run/base/result.h"

namespace accrue {

struct ScalarsWritten {
  std::filesystem::path file;
  std::int64_t updates = 0;
  std::int64_t evaluations = 0;
};
/// Writes what the run would have written with run.tensorboard_dir, at the times of its updates. An evaluation without
/// an update gets the time of the update before it. The file gets its name when complete; remains of a killed export in
/// the folder are overwritten. Errors, which leave no file: no run folder, a run without updates, a folder that already
/// holds event files (config); disk; cancelled if go_on, which is called at each update, returned false.
Result<ScalarsWritten> export_tensorboard(const std::filesystem::path& run_dir, const std::filesystem::path& folder,
                                          const std::function<bool()>& go_on = {});

}  // namespace accrue
