// SPDX-License-Identifier: Apache-2.0
// Common work of the ranks of one replica at a boundary, if they hold parts of one model: sum partial gradients, and
// compute one norm.
#pragma once

#include <cstddef>
#include <optional>

#include "accrue/checkpoint/tensor_archive.h"
#include "train/training.h"

namespace accrue {

/// Whether parameter i's gradient is this rank's part of a sum over the tensor axis.
bool summed_over_tensor(const Training& training, std::size_t i);
/// Returns the parameter that is one of two tied embeddings on different stages, original or copy.
std::optional<std::size_t> tied_parameter(const Training& training);
/// Completes the gradients of a window, after their reduction over the replicas: first the parts of the tensor axis,
/// then the uses of embeddings that several stages hold. Collective: the model axis.
void complete_gradients(Training& training);
/// Ranges of the flat parameters that this rank counts in a sum over the model (counts_here()), ascending, with or
/// without their padding rows.
std::vector<FlatRange> counted_ranges(const Training& training, bool with_padding);
/// L2 norm of the replica's gradient; each element of the model counts once. Collective: the model axis, under ZeRO the
/// world.
double gradient_norm(const Training& training);
/// Returns the undivided parameters by name, in the model's order, on the first pipeline stage; empty on the others.
/// Collective: the model axis.
NamedTensors whole_parameters(Training& training);

}  // namespace accrue
