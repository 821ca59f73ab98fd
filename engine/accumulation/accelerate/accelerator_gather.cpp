// SPDX-License-Identifier: Apache-2.0
// Gathering, padding and reducing what the ranks hold. A rank without a batch repeats the calls of its last micro-step
// with zeros; what it cannot have seen is refused before anybody waits. A gather first exchanges the shapes, which
// costs a second small collective: ranks whose tensors differ then all hear of it, and one that goes along takes the
// others'. Source: Accelerate 1.15, gather, gather_for_metrics, pad_across_processes and reduce.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "accelerator_impl.h"

namespace accrue::accelerate {
namespace {

/// One rank's word on its tensor.
struct Stated {
  bool goes_along = false;  ///< it has no batch, and its tensor says nothing
  std::vector<std::int64_t> shape;
};

constexpr std::int64_t most_dims = 14;

/// What all ranks say, by rank. Collective: the axis.
std::vector<Stated> stated_by_all(const at::Tensor& tensor, bool goes_along, Communicator& axis) {
  if (tensor.dim() > most_dims)
    throw std::invalid_argument("a tensor of " + std::to_string(tensor.dim()) +
                                " dims cannot be gathered or padded; reshape it to at most " +
                                std::to_string(most_dims));
  constexpr std::int64_t width = 2 + most_dims;
  at::Tensor mine = at::zeros({width}, at::kLong);
  auto* said = mine.mutable_data_ptr<std::int64_t>();
  said[0] = goes_along;
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
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    text += (rank > 0 ? ", rank " : "rank ") + std::to_string(rank) + " [";
    for (std::size_t i = 0; i < ranks[rank].shape.size(); ++i)
      text += (i > 0 ? ", " : "") + std::to_string(ranks[rank].shape[i]);
    text += "]";
  }
  return text;
}

/// `mine`, or zeros in the shape of the ranks that have a batch. Collective: the axis. Errors: throws
/// std::invalid_argument on every rank where those differ.
at::Tensor shaped_as_others(const at::Tensor& mine, bool goes_along, Communicator& axis) {
  const std::vector<Stated> ranks = stated_by_all(mine, goes_along, axis);
  const Stated* first = nullptr;
  for (const Stated& each : ranks) {
    if (each.goes_along) continue;
    if (first == nullptr) first = &each;
    if (each.shape != first->shape)
      throw std::invalid_argument("gather: the ranks' tensors have different shapes: " + text_of(ranks) +
                                  "; call pad_across_processes() first");
  }
  if (!goes_along || first == nullptr || mine.sizes() == first->shape) return mine;
  return at::zeros(first->shape, mine.options());
}

}  // namespace

void Accelerator::check_known_to_all(const char* call, bool repeated) const {
  const ActiveLoader* loader = state().active_dataloader();
  if (loader == nullptr || num_processes() == 1 || state().script().playing()) return;
  const bool unseen = loader->a_rank_goes_along() && !(repeated && loader->in_micro_step);
  if (!loader->leaves_a_rank_out() && !unseen) return;
  const std::string why =
      loader->leaves_a_rank_out()
          ? "the loader has too few batches for a rank to have one, and that rank cannot know of this call"
          : "a rank has no batch left and repeats what it called after accumulate(), which does not include this call";
  throw std::logic_error(std::string(call) + ": " + why + "; use uneven_ranks = empty_micro_steps, or even_batches");
}

void Accelerator::wait_for_everyone() {
  check_known_to_all("wait_for_everyone");
  state().script().note([this] { wait_for_everyone(); });
  impl_->axis.barrier();
}

at::Tensor Accelerator::gather(const at::Tensor& tensor) {
  check_known_to_all("gather");
  at::Tensor mine = (tensor.dim() == 0 ? tensor.reshape({1}) : tensor).detach().contiguous();
  state().script().note([this, nothing = at::zeros_like(mine)] { gather(nothing); });
  if (num_processes() > 1) mine = shaped_as_others(mine, state().script().playing(), impl_->axis);
  std::vector<std::int64_t> shape = mine.sizes().vec();
  shape.insert(shape.begin(), num_processes());
  at::Tensor all = at::empty(shape, mine.options());
  impl_->axis.all_gather(all, mine);
  return all.flatten(0, 1);
}

at::Tensor Accelerator::pad_across_processes(const at::Tensor& tensor, std::int64_t dim, double pad_index,
                                             bool pad_first) {
  check_known_to_all("pad_across_processes");
  state().script().note(
      [=, this, nothing = at::zeros_like(tensor)] { pad_across_processes(nothing, dim, pad_index, pad_first); });
  if (num_processes() == 1) return tensor;
  const auto ranks = stated_by_all(tensor, state().script().playing(), impl_->axis);
  if (dim >= tensor.dim() || dim < -tensor.dim()) return tensor;
  const auto axis = static_cast<std::size_t>(dim < 0 ? dim + tensor.dim() : dim);
  const std::int64_t own = tensor.sizes()[axis];
  std::int64_t longest = own;
  for (const Stated& each : ranks)
    if (!each.goes_along && axis < each.shape.size()) longest = std::max(longest, each.shape[axis]);
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
  return all.narrow(0, 0, std::min(real, all.size(0)));
}

at::Tensor Accelerator::reduce(const at::Tensor& tensor, Reduction reduction, double scale) {
  check_known_to_all("reduce");
  at::Tensor result = tensor.detach().clone();
  state().script().note([this, nothing = at::zeros_like(result), reduction] { reduce(nothing, reduction); });
  if (reduction != Reduction::none) {
    at::Tensor flat = result.reshape({-1}).contiguous();
    impl_->axis.all_reduce(flat);
    result = flat.reshape(result.sizes());
  }
  if (reduction == Reduction::mean) result = result / num_processes();
  return scale == 1.0 ? result : result * scale;
}

}  // namespace accrue::accelerate
