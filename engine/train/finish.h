// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "accrue/run/base/result.h"
#include "train/training.h"

namespace accrue {

/// Ends a completed run: writes final/model.safetensors (rank 0, if the run has a folder) and returns the weights'
/// hash. Ranks with another hash give a warning. Collective: the world. Errors: disk.
Result<std::string> write_final_weights(Training& training);

}  // namespace accrue
