// SPDX-License-Identifier: Apache-2.0
// A run's record as event files of TensorBoard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "accrue/run/result.h"

namespace accrue {

struct ScalarsWritten {
  std::filesystem::path file;
  std::int64_t updates = 0;
  std::int64_t evaluations = 0;
};
/// Writes what the run would have written with run.tensorboard_dir, at the times of its updates; an evaluation without
/// an update at the time of the update before it. The file has its name once it is whole; what a killed export left in
/// the folder is written over. Errors, which leave no file: no run folder, a run without updates, a folder that holds
/// event files already (config); disk; go_on, which is asked at each update, said false (cancelled).
Result<ScalarsWritten> export_tensorboard(const std::filesystem::path& run_dir, const std::filesystem::path& folder,
                                          const std::function<bool()>& go_on = {});

}  // namespace accrue
