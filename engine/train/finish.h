// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "accrue/run/result.h"
#include "train/training.h"

namespace accrue {

/// The end of a completed run: final/model.safetensors (rank 0, where the run has a folder) and the weights' hash,
/// equal on all ranks or warned about. Collective: the world. Errors: disk.
Result<std::string> write_final_weights(Training& training);

}  // namespace accrue
