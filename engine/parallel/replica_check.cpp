// SPDX-License-Identifier: Apache-2.0
// Replicas that differ in shape would silently sum gradients of different parameters. Each rank contributes a hash of
// every tensor's name, dtype, shape and requires_grad; two small gathers find the first difference.
#include "replica_check.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>

#include "accrue/run/base/number_text.h"

namespace accrue {
namespace {

std::string describe(const std::string& name, const at::Tensor& tensor) {
  return name + " [" + joined(tensor.sizes()) + "] " + c10::toString(tensor.scalar_type()) +
         (tensor.requires_grad() ? "" : " without gradient");
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

template <typename Bits>
bool bits_are_zero(const at::Tensor& tensor) {
  const auto* begin = static_cast<const Bits*>(tensor.const_data_ptr());
  // The sign is shifted out: -0 is zero too.
  return std::all_of(begin, begin + tensor.numel(), [](Bits bits) { return static_cast<Bits>(bits << 1) == 0; });
}

/// Stops at the first non-zero element, so an ordinary gradient costs one load. `tensor` is contiguous.
bool is_zero(const at::Tensor& tensor) {
  if (tensor.element_size() == 8) return bits_are_zero<std::uint64_t>(tensor);
  if (tensor.element_size() == 4) return bits_are_zero<std::uint32_t>(tensor);
  if (tensor.element_size() == 2) return bits_are_zero<std::uint16_t>(tensor);
  return !tensor.any().item<bool>();
}

/// Returns which are zero throughout, with one read from a device.
std::vector<bool> are_zero(const std::vector<at::Tensor>& tensors) {
  std::vector<bool> zero;
  if (!tensors.empty() && !tensors.front().is_cpu()) {
    std::vector<at::Tensor> any;
    for (const at::Tensor& each : tensors) any.push_back(each.any());
    const at::Tensor read = at::stack(any).cpu();
    for (std::int64_t i = 0; i < read.numel(); ++i) zero.push_back(!read.const_data_ptr<bool>()[i]);
    return zero;
  }
  for (const at::Tensor& each : tensors) zero.push_back(is_zero(each));
  return zero;
}

}  // namespace

void verify_replicas(const NamedTensors& tensors, const std::string& options, Communicator& axis) {
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
  const at::Tensor of_options = gathered({hash(options)}, axis);
  for (std::int64_t rank = 1; rank < axis.size(); ++rank) {
    const auto* each = of_options.const_data_ptr<std::int64_t>();
    if (each[rank] == each[0]) continue;
    throw std::invalid_argument("DistributedDataParallel: the ranks are given different options: here " + options +
                                ", and rank " + std::to_string(rank) + " of the axis has others than rank 0");
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
          " of the axis has with another name, shape, dtype or requires_grad than rank 0");
    }
  }
}

void broadcast_values(const NamedTensors& tensors, Communicator& axis) {
  if (axis.size() == 1) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    at::Tensor value = tensor.detach();
    if (value.is_contiguous()) {
      axis.broadcast(value, 0, CollectivePurpose::parameters);
      continue;
    }
    at::Tensor packed = value.contiguous();
    axis.broadcast(packed, 0, CollectivePurpose::parameters);
    value.copy_(packed);
  }
}

void broadcast_packed(const NamedTensors& tensors, Communicator& axis) {
  if (axis.size() == 1) return;
  const at::NoGradGuard no_grad;
  std::map<at::ScalarType, std::vector<at::Tensor>> by_type;
  for (const auto& [name, tensor] : tensors)
    if (tensor.numel() > 0) by_type[tensor.scalar_type()].push_back(tensor.detach());
  for (const auto& [type, members] : by_type) {
    std::vector<at::Tensor> pieces;
    for (const at::Tensor& each : members) pieces.push_back(each.reshape({-1}));
    at::Tensor packed = at::cat(pieces);
    axis.broadcast(packed, 0, CollectivePurpose::parameters);
    std::int64_t begin = 0;
    for (const at::Tensor& each : members) {
      each.copy_(packed.narrow(0, begin, each.numel()).view(each.sizes()));
      begin += each.numel();
    }
  }
}

void agree_on(const std::vector<NamedNumber>& numbers, Communicator& axis) {
  if (axis.size() == 1) return;
  const auto count = static_cast<std::int64_t>(numbers.size());
  std::vector<std::int64_t> mine;
  for (const NamedNumber& each : numbers) mine.push_back(each.value);
  const at::Tensor all = gathered(mine, axis);
  const auto* value = all.const_data_ptr<std::int64_t>();
  for (std::int64_t at = count; at < axis.size() * count; ++at) {
    if (value[at] == value[at % count]) continue;
    throw std::invalid_argument(numbers[static_cast<std::size_t>(at % count)].name + " is " +
                                std::to_string(value[at % count]) + " on rank 0 of the axis and " +
                                std::to_string(value[at]) + " on rank " + std::to_string(at / count) +
                                "; give all ranks the same");
  }
}

std::vector<bool> reached_by_any(std::vector<bool> mine, const std::vector<at::Tensor>& reduced, Communicator& axis) {
  bool ask = false;
  const std::vector<bool> zero = are_zero(reduced);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (!zero[i]) mine[i] = true;
    ask = ask || zero[i];
  }
  if (!ask || axis.size() == 1) return mine;
  return reached_by_any(mine, reduced.front().device(), axis);
}

std::vector<bool> reached_by_any(const std::vector<bool>& mine, at::Device device, Communicator& axis) {
  at::Tensor flags = at::empty({static_cast<std::int64_t>(mine.size())}, at::kInt);
  std::copy(mine.begin(), mine.end(), flags.mutable_data_ptr<int>());
  if (!device.is_cpu()) flags = flags.to(device);
  axis.all_reduce(flags, Reduce::max);
  flags = flags.cpu();
  const int* any = flags.const_data_ptr<int>();
  return std::vector<bool>(any, any + mine.size());
}

}  // namespace accrue
