// SPDX-License-Identifier: Apache-2.0
// Gathering, padding and reducing values of the ranks. A gather first exchanges the shapes, which costs a second small
// collective, so all ranks learn of differing tensors. A rank without a sample contributes zeros in the others' shape,
// whatever its loop computed from an empty batch. Source: Accelerate 1.15, gather, gather_for_metrics,
// pad_across_processes and reduce.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "accelerator_impl.h"
#include "accrue/run/base/number_text.h"

namespace accrue::accelerate {
namespace {

/// One rank's description of its tensor.
struct Stated {
  bool empty = false;  ///< it has no sample, so its tensor is meaningless
  std::vector<std::int64_t> shape;
};

constexpr std::int64_t most_dims = 14;

/// Returns all ranks' descriptions, by rank. Collective: the axis.
std::vector<Stated> stated_by_all(const at::Tensor& tensor, bool empty, Communicator& axis) {
  if (tensor.dim() > most_dims)
    throw std::invalid_argument("a tensor of " + std::to_string(tensor.dim()) +
                                " dims cannot be gathered or padded; reshape it to at most " +
                                std::to_string(most_dims));
  // A row is [empty, dims, sizes...], 0 behind the last size: equally long for all tensors, so one gather suffices.
  constexpr std::int64_t width = 2 + most_dims;
  at::Tensor mine = at::zeros({width}, at::kLong);
  auto* said = mine.mutable_data_ptr<std::int64_t>();
  said[0] = empty;
  said[1] = tensor.dim();
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), said + 2);
  at::Tensor all = at::empty({axis.size(), width}, at::kLong);
  axis.all_gather(all, mine);
  std::vector<Stated> ranks;
  for (std::int64_t rank = 0; rank < axis.size(); ++rank) {
    const auto* row = all.const_data_ptr<std::int64_t>() + rank * width;
    ranks.push_back({row[0] != 0, {row + 2, row + 2 + row[1]}});
  }
  return ranks;
}

std::string text_of(const std::vector<Stated>& ranks) {
  std::string text;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    text += (rank > 0 ? ", rank " : "rank ") + std::to_string(rank) + " [" + joined(ranks[rank].shape) + "]";
  return text;
}

}  // namespace

at::Tensor AcceleratorImpl::contribution(const at::Tensor& mine, const char* call) const {
  const std::vector<Stated> ranks = stated_by_all(mine, state.on_empty_batch(), axis);
  const auto full = std::find_if(ranks.begin(), ranks.end(), [](const Stated& each) { return !each.empty; });
  for (const Stated& each : ranks)
    if (!each.empty && each.shape != full->shape)
      throw std::invalid_argument(std::string(call) + ": the ranks' tensors have different shapes: " + text_of(ranks) +
                                  "; call pad_across_processes() first");
  if (!state.on_empty_batch()) return mine;
  return full == ranks.end() ? at::zeros_like(mine) : at::zeros(full->shape, mine.options());
}

void Accelerator::wait_for_everyone() {
  impl_->axis.barrier();
}

at::Tensor Accelerator::gather(const at::Tensor& tensor) {
  at::Tensor mine = (tensor.dim() == 0 ? tensor.reshape({1}) : tensor).detach().contiguous();
  if (num_processes() > 1) mine = impl_->contribution(mine, "gather");
  std::vector<std::int64_t> shape = mine.sizes().vec();
  shape.insert(shape.begin(), num_processes());
  at::Tensor all = at::empty(shape, mine.options());
  impl_->axis.all_gather(all, mine);
  // [ranks, n, ...] -> [ranks n, ...], in rank order.
  return all.flatten(0, 1);
}

at::Tensor Accelerator::pad_across_processes(const at::Tensor& tensor, std::int64_t dim, double pad_index,
                                             bool pad_first) {
  if (num_processes() == 1) return tensor;
  const auto ranks = stated_by_all(tensor, state().on_empty_batch(), impl_->axis);
  if (dim >= tensor.dim() || dim < -tensor.dim()) return tensor;
  const auto axis = static_cast<std::size_t>(dim < 0 ? dim + tensor.dim() : dim);
  const std::int64_t own = tensor.sizes()[axis];
  std::int64_t longest = own;
  for (const Stated& each : ranks)
    if (!each.empty && axis < each.shape.size()) longest = std::max(longest, each.shape[axis]);
  if (longest == own) return tensor;
  std::vector<std::int64_t> shape = tensor.sizes().vec();
  shape[axis] = longest;
  at::Tensor padded = at::full(shape, pad_index, tensor.options().requires_grad(false));
  padded.narrow(static_cast<std::int64_t>(axis), pad_first ? longest - own : 0, own).copy_(tensor);
  return padded;
}

at::Tensor Accelerator::gather_for_metrics(const at::Tensor& tensor) {
  const at::Tensor all = gather(tensor);
  const std::int64_t real = state().remainder();
  if (!state().end_of_dataloader() || real <= 0) return all;
  // Ranks have consecutive stretches of the last round, so its real samples are first and the repeated ones last.
  return all.narrow(0, 0, std::min(real, all.size(0)));
}

at::Tensor Accelerator::reduce(const at::Tensor& tensor, Reduction reduction, double scale) {
  at::Tensor result = tensor.detach().clone();
  if (num_processes() > 1 && state().some_rank_is_empty()) result = impl_->contribution(result, "reduce");
  if (reduction != Reduction::none) {
    at::Tensor flat = result.reshape({-1}).contiguous();
    impl_->axis.all_reduce(flat);
    result = flat.reshape(result.sizes());
  }
  if (reduction == Reduction::mean) result = result / num_processes();
  return scale == 1.0 ? result : result * scale;
}

}  // namespace accrue::accelerate
