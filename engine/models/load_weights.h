// SPDX-License-Identifier: Apache-2.0
// Reads a rank's part of a model from a folder of weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "accrue/run/cost/model_share.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

/// Fills a share's parameters from model.weights. Reads only what the share holds, at most 64 MiB at a time; of a
/// checkpoint, as a resume does, one part of a tensor at a time. Errors: throws std::runtime_error if the folder
/// changed since the plan was made, or cannot be read.
void load_weights(const ModelSpec& model, const ModelShare& share, std::vector<at::Tensor> parameters);

}  // namespace accrue
