// SPDX-License-Identifier: Apache-2.0
// Sums over a model that ranks hold parts of, for norms and counts of zeros: each element once.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <span>

#include "accrue/comm/mesh.h"
#include "accrue/run/shard_layout.h"

namespace accrue {

/// Whether a rank counts a parameter: shared copies never, what every tensor rank has a copy of on the first alone.
inline bool counts_here(bool shared, bool divided, std::int64_t tensor_rank) {
  return !shared && (divided || tensor_rank == 0);
}
/// The ranks that hold parts: those of a replica, under ZeRO all.
inline Communicator& holders_of_parts(const Mesh& mesh, bool sharded) {
  return sharded ? mesh.world() : mesh.model();
}
/// How many numbers in the ranges of a flat tensor are 0.
inline std::int64_t zeros_in(const at::Tensor& flat, std::span<const FlatRange> ranges) {
  at::Tensor zeros = at::zeros({}, flat.options().dtype(at::kLong));  // read once, at the end
  for (const FlatRange& range : ranges) zeros.add_((flat.narrow(0, range.offset, range.size) == 0).sum());
  return zeros.item<std::int64_t>();
}

}  // namespace accrue
