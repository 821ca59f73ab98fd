// SPDX-License-Identifier: Apache-2.0
#include "megatron/same_batch.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "accrue/run/base/sha256.h"
#include "comm/gathered.h"

namespace accrue::megatron {
namespace {

/// Hashes names, types, shapes and values. Exchanging 64 characters costs less than exchanging a batch.
std::string hash_of(const Batch& batch) {
  Sha256 hash;
  for (const auto& [name, tensor] : batch) {
    std::string head = name;
    if (tensor.defined()) {
      head += std::string(" ") + c10::toString(tensor.scalar_type());
      for (const std::int64_t size : tensor.sizes()) head += " " + std::to_string(size);
    }
    hash.update(head.c_str(), head.size() + 1);
    if (!tensor.defined()) continue;
    const at::Tensor values = tensor.detach().cpu().contiguous();
    hash.update(values.const_data_ptr(), values.nbytes());
  }
  return hash.hex();
}

/// "rank 1 (data 0, stage 0, tensor 1)".
std::string name_of(const Mesh& mesh, std::int64_t tensor) {
  GridCoordinate at = mesh.at();
  at.tensor = tensor;
  return "rank " + std::to_string(mesh.grid().rank(at)) + " (data " + std::to_string(at.data) + ", stage " +
         std::to_string(at.pipeline) + ", tensor " + std::to_string(at.tensor) + ")";
}

}  // namespace

void demand_same_batch(const Batch& batch, const Mesh& mesh) {
  Communicator& axis = mesh.tensor();
  if (axis.size() == 1) return;
  const std::string own = hash_of(batch);
  const auto length = static_cast<std::int64_t>(own.size());
  at::Tensor mine = at::empty({length}, at::kByte);
  std::ranges::copy(own, mine.mutable_data_ptr<std::uint8_t>());
  const at::Tensor all = gathered(axis, mine, CollectivePurpose::check);
  const std::uint8_t* const first = all.const_data_ptr<std::uint8_t>();
  for (std::int64_t rank = 1; rank < axis.size(); ++rank) {
    if (std::equal(first, first + length, first + rank * length)) continue;
    throw std::invalid_argument(name_of(mesh, rank) + " has another batch than " + name_of(mesh, 0) +
                                ": tensor-parallel ranks read for themselves, and must get the same batch");
  }
}

}  // namespace accrue::megatron
