// SPDX-License-Identifier: Apache-2.0
// The logs of other tools, whatever their kind: TensorBoard's event files, tables (what the studio exports, a csv file
// of W&B, Lightning or Keras), JSON lines (MMEngine's scalars.json), the HF Trainer's trainer_state.json, what
// Megatron-LM prints, MLflow's metric files. What a file is, its contents say, and not its name.
#pragma once

#include <filesystem>
#include <vector>

#include "accrue/run/result.h"
#include "accrue/run/run_log.h"

namespace accrue {

/// The runs of a file or folder, in its order; at least one, each with a scalar. A file that is cut short, as by a
/// killed program, gives what is whole, and a sentence in the problems.
/// Errors: missing; of no kind that is read; holds no scalar; no column of steps, and what else is wrong with a table,
/// by line and column; a text of more than 256 MiB, or 64 MiB of JSON (config); unreadable (disk); given up
/// (cancelled).
Result<std::vector<RunLog>> read_logs(const std::filesystem::path& path, const LogRequest& request = {});

}  // namespace accrue
