// SPDX-License-Identifier: Apache-2.0
// What a run left to start another from: its final weights, or a checkpoint. Only names, sizes and locks are looked at.
#pragma once

#include <filesystem>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

/// The run that a folder is, is the final weights of, or is a checkpoint of; empty if it is none of these, or
/// in Hugging Face's layout.
std::filesystem::path run_of(const std::filesystem::path& folder);
/// Whether a folder is named as a checkpoint of a run: RUN/checkpoints/step-40.
bool is_checkpoint_folder(const std::filesystem::path& folder);
/// The files that a checkpoint's manifest lists. Errors (data): there is no such
/// checkpoint, or a file is missing or of another size.
Result<std::vector<std::filesystem::path>> checkpoint_files(const std::filesystem::path& checkpoint);
/// The folder with a run's weights: "final", or else the newest complete checkpoint. Errors (data): there is neither.
Result<std::filesystem::path> weights_of_run(const std::filesystem::path& run_dir);
/// Errors (data): the run trains now, so that its checkpoints come and go.
Result<void> check_ended(const std::filesystem::path& run_dir);

}  // namespace accrue
