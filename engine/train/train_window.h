// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/training.h"

namespace accrue {

/// Runs micro-steps up to the next boundary, the end of the run, or a stop. The gradients are then in the arena,
/// reduced if the plan says so. Collective: the data axis, at micro-steps whose plan says sync; the model axis, at
/// each.
WindowPass train_window(Training& training);

/// Keys dropout's generators by (seed, micro-step, chunk and stage), and the tensor axis's own also by its rank; with
/// parallel.data_parallel_random_init by the replica, too.
void key_dropout(const Training& training, std::int64_t micro_step, std::int64_t chunk);

}  // namespace accrue
