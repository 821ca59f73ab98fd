// SPDX-License-Identifier: Apache-2.0
// Reader of other tools' logs of any kind: TensorBoard's event files, tables (the studio's exports, CSV files of W&B,
// Lightning or Keras), JSON lines (MMEngine's scalars.json), the HF Trainer's trainer_state.json, Megatron-LM's output,
// MLflow's metric files. The contents decide the kind of a file, not its name.
#pragma once

#include <filesystem>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/logs/run_log.h"

namespace accrue {

/// Returns the runs of a file or folder in its order; at least one, each with a scalar. A truncated file, as of a
/// killed program, gives its complete part and a sentence in the problems.
/// Errors: missing; of no supported kind; without a scalar; no column of steps, or another fault of a table, with line
/// and column; a text of more than 256 MiB, or 64 MiB of JSON (config); unreadable (disk); cancelled.
Result<std::vector<RunLog>> read_logs(const std::filesystem::path& path, const LogRequest& request = {});

}  // namespace accrue
