// SPDX-License-Identifier: Apache-2.0
// Decides when models reduce. The original's hooks reduce inside any backward. Here backward() does it afterwards,
// which would miss a caller's own backward, and a model that only earlier micro-steps of its window reached. So each
// model records whether gradients have arrived since its last reduction, and the update that needs them reduces at the
// latest. Ranks with the same loop decide alike. A rank without a sample cannot know what the others' backward reached,
// so while there is one, all ranks exchange which models they mean. Source: the reducer of
// torch.nn.parallel.DistributedDataParallel under Accelerate 1.15's accumulate() and no_sync().
#include <ATen/ops/div.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "accelerator_impl.h"

namespace accrue::accelerate {

void PreparedModel::look() {
  if (moved() && no_syncs == 0) unreduced = true;
}

std::vector<bool> AcceleratorImpl::models_of(const std::vector<at::Tensor>& parameters) const {
  std::vector<bool> of;
  for (const auto& each : models) of.push_back(each->parameters.holds_any(parameters));
  return of;
}

bool AcceleratorImpl::is_of_no_model(const at::Tensor& parameter) const {
  return std::none_of(models.begin(), models.end(),
                      [&](const auto& each) { return each->parameters.holds(parameter); });
}

void AcceleratorImpl::reduce(std::vector<bool> wanted) {
  if (axis.size() > 1 && state.some_rank_is_empty() && !models.empty()) {
    at::Tensor any = at::zeros({static_cast<std::int64_t>(models.size())}, at::kDouble);
    auto* flags = any.mutable_data_ptr<double>();
    std::copy(wanted.begin(), wanted.end(), flags);
    axis.all_reduce(any, Reduce::max);
    std::transform(flags, flags + wanted.size(), wanted.begin(), [](double flag) { return flag > 0.0; });
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (!wanted[i]) continue;
    PreparedModel& model = *models[i];
    const bool enabled = model.ddp->sync_enabled();
    model.ddp->set_sync_enabled(true);
    driver.reduce(model);
    model.ddp->set_sync_enabled(enabled);
  }
}

void AcceleratorImpl::settle(std::vector<bool> needed) {
  look();
  if (!state.sync_gradients()) return;
  for (std::size_t i = 0; i < models.size(); ++i) needed[i] = needed[i] && models[i]->unreduced && !models[i]->kept();
  reduce(std::move(needed));
}

void Accelerator::backward(const at::Tensor& loss, BackwardOptions options) {
  impl_->backward(loss, options);
}

void AcceleratorImpl::backward(const at::Tensor& loss, BackwardOptions options) {
  constexpr std::uint64_t unknown = ~std::uint64_t{0};  // after any stretch: nothing prevents its reduction
  look();
  if (scaler) scaler->settle();
  ++backwards;
  std::uint64_t when = unknown;
  if (!state.on_empty_batch()) {
    if (!loss.defined() || !loss.grad_fn())
      throw std::invalid_argument(
          "backward(loss): the loss has no graph; compute it from the model's output with gradients enabled");
    // Autograd's number of the loss tells when it was computed: a forward under no_sync() stays local, whenever its
    // backward runs.
    when = loss.grad_fn()->sequence_nr();
    // Always N, as in the original: a short window at the end of an epoch weighs k / N. The loss scale follows the
    // division.
    const at::Tensor share = loss / state.num_steps();
    (scaler ? scaler->scale(share) : share).backward({}, options.retain_graph, options.create_graph);
  }
  bool covered = true;  // equal on all ranks
  std::vector<bool> wanted;
  for (const auto& each : models) {
    covered = covered && !each->triggered && !each->ddp->sync_enabled();
    const bool reached = each->moved();
    wanted.push_back(reached && each->reduces(when));
    if (!reached || wanted.back()) continue;
    each->ddp->leave_local();
    each->unreduced = each->unreduced || each->waits(when);
  }
  if (!covered) reduce(std::move(wanted));
}

}  // namespace accrue::accelerate
