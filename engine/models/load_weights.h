// SPDX-License-Identifier: Apache-2.0
// Reads a rank's part of a model from a folder of weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "accrue/run/cost/model_share.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

/// Checks the content of this rank's share of a checkpoint that model.weights names; nothing for other starts. Errors:
/// throws ResultError (data) if a file is not what its manifest says.
void verify_weights(const ModelSpec& model, std::int64_t rank, std::int64_t ranks);

/// Fills a share's parameters from model.weights. Reads only what the share holds, at most 64 MiB at a time; of a
/// checkpoint, as a resume does, one part of a tensor at a time. Errors: throws std::runtime_error if the folder
/// changed since the plan was made, or cannot be read.
void load_weights(const ModelSpec& model, const ModelShare& share, std::vector<at::Tensor> parameters);

}  // namespace accrue
