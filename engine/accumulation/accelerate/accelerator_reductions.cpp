// SPDX-License-Identifier: Apache-2.0
// When models reduce. The original's hooks reduce inside any backward; here backward() does it afterwards, which a
// backward of the caller's own would go around, and which would miss a model that only earlier micro-steps of its group
// reached. So each model remembers that it is owed a reduction, and the update that needs its gradients makes it at the
// latest. Whether one is made follows from what this rank saw: ranks that run the same loop decide alike.
// Source: the reducer of torch.nn.parallel.DistributedDataParallel under Accelerate 1.15's accumulate() and no_sync().
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "accelerator_impl.h"

namespace accrue::accelerate {
namespace {

std::vector<std::size_t> all_of(std::size_t count) {
  std::vector<std::size_t> indices(count);
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  return indices;
}

bool in_a_stretch(const PreparedModel& model, std::uint64_t when) {
  return std::any_of(model.quiet.begin(), model.quiet.end(),
                     [&](const QuietStretch& each) { return each.begin <= when && when < each.end; });
}

}  // namespace

bool PreparedModel::reduces(std::uint64_t when) const {
  return triggered || (ddp->sync_enabled() && !in_a_stretch(*this, when));
}

bool PreparedModel::waits(std::uint64_t when) const {
  return open_groups > 0 && no_syncs == 0 && !in_a_stretch(*this, when);
}

void PreparedModel::pay() {
  const bool enabled = ddp->sync_enabled();
  if (!enabled && (open_groups == 0 || no_syncs > 0)) return;
  ddp->set_sync_enabled(true);
  ddp->finish();
  ddp->set_sync_enabled(enabled);
  owed = false;
}

Reached Accelerator::Impl::everything() const {
  return {all_of(models.size()), all_of(optimizers.size())};
}

std::vector<std::size_t> Accelerator::Impl::arrived() {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < models.size(); ++i)
    if (models[i]->arrivals.moved()) indices.push_back(i);
  return indices;
}

void Accelerator::Impl::look() {
  for (const auto& each : optimizers) each->look();
  const std::vector<std::size_t> by_hand = arrived();
  if (by_hand.empty()) return;
  for (const std::size_t i : by_hand) models[i]->by_hand[state.sync_gradients()] = true;
  state.script().note([this, by_hand] { owe(by_hand); });
  owe(by_hand);
}

void Accelerator::Impl::gradients_are_known() {
  for (const auto& each : optimizers) each->gradients_are_known();
}

void Accelerator::Impl::owe(const std::vector<std::size_t>& chosen) {
  for (const std::size_t i : chosen) models[i]->owed = true;
}

void Accelerator::Impl::expect_by_hand() {
  for (const auto& each : models) each->owed = each->owed || each->by_hand[state.sync_gradients()];
}

void Accelerator::Impl::reduce_owed(const std::vector<at::Tensor>& parameters) {
  look();
  if (!state.sync_gradients()) return;
  if (std::none_of(models.begin(), models.end(), [](const auto& each) { return each->owed; })) return;
  const TensorSet needed(parameters);
  for (const auto& model : models)
    if (model->owed && needed.holds_any(model->ddp->parameters())) model->pay();
  gradients_are_known();
}

void Accelerator::Impl::after_backward(const Reached& reached, std::uint64_t when) {
  for (const std::size_t i : reached.models) {
    PreparedModel& model = *models[i];
    if (model.reduces(when)) {
      model.ddp->finish();
      model.owed = false;
      continue;
    }
    model.ddp->leave_local();
    if (model.waits(when)) model.owed = true;
  }
  using Gradients = AcceleratedOptimizer::Gradients;
  for (const std::size_t i : reached.optimizers)
    optimizers[i]->set_gradients(state.sync_gradients() ? Gradients::complete : Gradients::open);
  gradients_are_known();
}

void Accelerator::Impl::before_forward(const std::vector<std::size_t>& chosen) {
  if (!chosen.empty() && models[chosen.front()]->ddp->sync_enabled() && !std::exchange(agreed, true))
    models[chosen.front()]->ddp->agree("Accelerator: gradient_accumulation_steps", {state.num_steps()});
  for (const std::size_t i : chosen) models[i]->ddp->before_forward();
}

void Accelerator::Impl::shadow() {
  look();
  plan = state.begin_micro_step();
  std::optional<AtEnd> quiet;
  const std::vector<std::size_t> named = last_named.value_or(all_of(models.size()));
  if (!plan.update && !state.sync_each_batch()) quiet.emplace(keep_quiet(named));
  before_forward(named);
  if (state.script().play(plan.update)) return;
  if (scaler) scaler->settle();
  after_backward(everything(), std::numeric_limits<std::uint64_t>::max());
  for (const auto& each : optimizers) each->step();
  for (const auto& each : schedulers) each->step();
  for (const auto& each : optimizers) each->zero_grad();
}

}  // namespace accrue::accelerate
