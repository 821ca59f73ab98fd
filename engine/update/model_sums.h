// SPDX-License-Identifier: Apache-2.0
// Sums over a model whose parts ranks hold, for norms and counts of zeros; each element counts once.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <span>

#include "accrue/comm/mesh.h"
#include "accrue/run/cost/shard_layout.h"

namespace accrue {

/// Whether a rank counts a parameter: never a shared copy, and a copy on every tensor rank only on the first.
inline bool counts_here(bool shared, bool divided, std::int64_t tensor_rank) {
  return !shared && (divided || tensor_rank == 0);
}
/// Ranks that hold the parts: those of a replica, under ZeRO all.
inline Communicator& holders_of_parts(const Mesh& mesh, bool sharded) {
  return sharded ? mesh.world() : mesh.model();
}
/// Number of zeros in the ranges of a flat tensor.
inline std::int64_t zeros_in(const at::Tensor& flat, std::span<const FlatRange> ranges) {
  at::Tensor zeros = at::zeros({}, flat.options().dtype(at::kLong));  // read once, at the end
  for (const FlatRange& range : ranges) zeros.add_((flat.narrow(0, range.offset, range.size) == 0).sum());
  return zeros.item<std::int64_t>();
}

}  // namespace accrue
