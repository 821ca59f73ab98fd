// SPDX-License-Identifier: Apache-2.0
// Tensor-parallel ranks read their batches for themselves: no rank sends one to another. A run's own data are a pure
// function of plan and position, and its first batch shows whether all ranks have the same files. What others make is
// compared each time: a program's or a plug-in library's data sets, its custom_get_batch_function, and the batches of
// its own train step.
#pragma once

#include "accrue/comm/mesh.h"
#include "accrue/megatron/model_chunk.h"

namespace accrue::megatron {

/// Errors: throws std::invalid_argument, on all ranks of the axis, with the first rank whose batch is another than the
/// axis's first. Collective: the tensor axis, if it has several ranks.
void demand_same_batch(const Batch& batch, const Mesh& mesh);

}  // namespace accrue::megatron
