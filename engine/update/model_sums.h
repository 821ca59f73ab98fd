// SPDX-License-Identifier: Apache-2.0
// Sums over a model that ranks hold parts of, for norms and counts of zeros: each element once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "accrue/comm/mesh.h"
#include "accrue/optim/flat_optimizer.h"

namespace accrue {

/// Whether a rank counts a parameter: shared copies never, what every tensor rank has a copy of on the first alone.
inline bool counts_here(bool shared, bool divided, std::int64_t tensor_rank) {
  return !shared && (divided || tensor_rank == 0);
}
/// The ranges of what it counts.
std::vector<FlatRange> counted_ranges(std::span<const OptimizerSegment> segments, std::int64_t tensor_rank);
/// The ranks that hold parts: those of a replica, under ZeRO all.
inline Communicator& holders_of_parts(const Mesh& mesh, bool sharded) {
  return sharded ? mesh.world() : mesh.model();
}
/// How many numbers in the ranges of a flat tensor are 0.
std::int64_t zeros_in(const at::Tensor& flat, std::span<const FlatRange> ranges);

}  // namespace accrue
