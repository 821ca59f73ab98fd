// SPDX-License-Identifier: Apache-2.0
// Replicas that differ in shape would add gradients of different parameters without a word. Each rank states a hash of
// every tensor's name, dtype and shape; two small gathers find the first that differs.
#include "replica_check.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <stdexcept>

namespace accrue {
namespace {

std::string describe(const std::string& name, const at::Tensor& tensor) {
  std::string text = name + " [";
  for (std::int64_t d = 0; d < tensor.dim(); ++d) text += (d == 0 ? "" : ", ") + std::to_string(tensor.size(d));
  return text + "] " + c10::toString(tensor.scalar_type());
}

/// FNV-1a.
std::int64_t hash(const std::string& text) {
  std::uint64_t value = 14695981039346656037ULL;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return static_cast<std::int64_t>(value);
}

at::Tensor gathered(const std::vector<std::int64_t>& mine, Communicator& axis) {
  const auto count = static_cast<std::int64_t>(mine.size());
  at::Tensor in = at::empty({count}, at::kLong);
  std::copy(mine.begin(), mine.end(), in.mutable_data_ptr<std::int64_t>());
  at::Tensor out = at::empty({axis.size(), count}, at::kLong);
  axis.all_gather(out, in);
  return out;
}

}  // namespace

void verify_replicas(const NamedTensors& tensors, Communicator& axis) {
  if (axis.size() == 1) return;
  const auto count = static_cast<std::int64_t>(tensors.size());
  const at::Tensor counts = gathered({count}, axis);
  const auto* by_rank = counts.const_data_ptr<std::int64_t>();
  for (std::int64_t rank = 0; rank < axis.size(); ++rank) {
    if (by_rank[rank] == by_rank[0]) continue;
    throw std::invalid_argument("DistributedDataParallel: the ranks hold different models: rank 0 of the axis has " +
                                std::to_string(by_rank[0]) + " parameters and buffers, rank " + std::to_string(rank) +
                                " has " + std::to_string(by_rank[rank]));
  }
  std::vector<std::int64_t> hashes;
  for (const auto& [name, tensor] : tensors) hashes.push_back(hash(describe(name, tensor)));
  const at::Tensor all = gathered(hashes, axis);
  const auto* value = all.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t rank = 1; rank < axis.size(); ++rank) {
      if (value[rank * count + i] == value[i]) continue;
      const auto& [name, tensor] = tensors[static_cast<std::size_t>(i)];
      throw std::invalid_argument(
          "DistributedDataParallel: the ranks hold different models: here the first that differs is " +
          describe(name, tensor) + ", which rank " + std::to_string(rank) +
          " of the axis has with another name, shape or dtype than rank 0");
    }
  }
}

void broadcast_values(const NamedTensors& tensors, Communicator& axis) {
  if (axis.size() == 1) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    at::Tensor value = tensor.detach();
    if (value.is_contiguous()) {
      axis.broadcast(value);
      continue;
    }
    at::Tensor packed = value.contiguous();
    axis.broadcast(packed);
    value.copy_(packed);
  }
}

}  // namespace accrue
