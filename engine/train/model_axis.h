// SPDX-License-Identifier: Apache-2.0
// What the ranks of one replica do together at a boundary, where they hold parts of one model: sum the gradients that
// each has a part of, and take one norm.
#pragma once

#include <cstddef>
#include <optional>

#include "accrue/checkpoint/tensor_archive.h"
#include "train/training.h"

namespace accrue {

/// Whether parameter i's gradient is this rank's part of a sum over the tensor axis.
bool summed_over_tensor(const Training& training, std::size_t i);
/// The parameter that is a copy of a tied embedding, or the original of one, where the other is on another stage.
std::optional<std::size_t> tied_parameter(const Training& training);
/// Completes the gradients of a window, after they were reduced over the replicas: what each rank of the tensor axis
/// has a part of, then the uses of embeddings that several stages hold. Collective: the model axis.
void complete_gradients(Training& training);
/// The ranges of the flat parameters that this rank counts in a sum over the model (counts_here()), ascending, with
/// their rows of padding or without.
std::vector<FlatRange> counted_ranges(const Training& training, bool with_padding);
/// L2 norm of the replica's gradient, each element of the model once. Collective: the model axis, under ZeRO the world.
double gradient_norm(const Training& training);
/// The undivided parameters under their names, in the model's order, on the first pipeline stage; empty on the others.
/// Collective: the model axis.
NamedTensors whole_parameters(Training& training);

}  // namespace accrue
