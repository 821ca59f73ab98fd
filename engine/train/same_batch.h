// SPDX-License-Identifier: Apache-2.0
// Tensor-parallel ranks read their batches for themselves: no rank sends one to another. The run's own data are a pure
// function of plan and position, and the first batch of a run shows whether all ranks have the same files. What a
// plug-in library's data sets and its custom_get_batch_function give is compared each time; a train step of the library
// whose get_batch() makes a batch must make the same on all of them.
#pragma once

#include <string>

#include "accrue/comm/mesh.h"
#include "accrue/megatron/model_chunk.h"

namespace accrue {

/// Errors: throws std::invalid_argument, on all ranks of the axis, with the first rank whose batch is another than the
/// axis's first; `giver` begins the message. Collective: the tensor axis, if it has several ranks.
void demand_same_batch(const megatron::Batch& batch, const Mesh& mesh,
                       const std::string& giver = "the plug-in library");

}  // namespace accrue
