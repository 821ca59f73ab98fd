// SPDX-License-Identifier: Apache-2.0
// The scopes of an Accelerator. They hold the models weakly: after free_memory(), or the Accelerator's own end, there
// is nothing to restore.
#include <ATen/SequenceNumber.h>

#include <algorithm>
#include <utility>

#include "accelerator_impl.h"

namespace accrue::accelerate {
namespace {

/// Number of stretches remembered per model; a backward after as many no_sync() scopes reduces.
constexpr std::size_t remembered_stretches = 1024;

/// Keeps the models from reducing until the result is destroyed, and then calls `end` with each that still exists.
AtEnd covered(const PreparedModels& models, const std::function<void(PreparedModel&)>& end) {
  auto cover = std::make_shared<Cover>(DrivenModels(models.begin(), models.end()));
  std::vector<std::weak_ptr<PreparedModel>> held(models.begin(), models.end());
  return AtEnd([cover = std::move(cover), held = std::move(held), end] {
    for (const auto& each : held)
      if (const auto model = each.lock()) end(*model);
  });
}

}  // namespace

PreparedModels AcceleratorImpl::chosen(std::vector<std::size_t> indices) const {
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  PreparedModels named;
  for (const std::size_t i : indices) named.push_back(models[i]);
  return named;
}

AccumulateScope Accelerator::accumulate_models(std::vector<std::size_t> models) {
  impl_->look();
  for (const auto& each : impl_->optimizers) each->begin_micro_step();
  impl_->plan = state().begin_micro_step();
  const PreparedModels named = impl_->chosen(std::move(models));
  if (impl_->plan.sync) {
    impl_->driver.before_forward({named.begin(), named.end()});
    return AccumulateScope(nullptr);
  }
  for (const auto& each : named) ++each->open_windows;
  return AccumulateScope(covered(named, [](PreparedModel& model) { --model.open_windows; }));
}

NoSyncScope Accelerator::no_sync_models(std::vector<std::size_t> models) {
  impl_->look();
  const PreparedModels named = impl_->chosen(std::move(models));
  for (const auto& each : named) ++each->no_syncs;
  return NoSyncScope(covered(named, [begin = at::sequence_number::peek()](PreparedModel& model) {
    static_cast<void>(model.moved());  // gradients of a caller's own backward stay local
    --model.no_syncs;
    model.stretches.push_back({begin, at::sequence_number::peek()});
    if (model.stretches.size() > remembered_stretches) model.stretches.pop_front();
  }));
}

TriggerSyncScope Accelerator::trigger_sync_model(std::size_t chosen) {
  const auto& model = impl_->models[chosen];
  const bool enabled = model->ddp->sync_enabled();
  const bool before = std::exchange(model->triggered, true);
  model->ddp->set_sync_enabled(true);
  return TriggerSyncScope([held = std::weak_ptr(model), enabled, before] {
    const auto alive = held.lock();
    if (!alive) return;
    alive->triggered = before;
    alive->ddp->set_sync_enabled(enabled);
  });
}

JoinScope Accelerator::join_uneven_inputs(std::optional<bool> even_batches) {
  if (num_processes() == 1) return JoinScope(nullptr);
  const bool even = even_batches.value_or(state().options().even_batches);
  std::vector<std::pair<PreparedLoaderBase*, std::optional<UnevenRanks>>> before;
  for (PreparedLoaderBase* loader : state().loaders()) {
    before.emplace_back(loader, loader->uneven_override());
    if (even_batches || !even) loader->override_uneven(even ? UnevenRanks::repeat : UnevenRanks::join);
  }
  return JoinScope([impl = impl_.get(), before = std::move(before)] {
    const auto& alive = impl->state.loaders();
    for (const auto& [loader, uneven] : before)
      if (std::find(alive.begin(), alive.end(), loader) != alive.end()) loader->override_uneven(uneven);
  });
}

}  // namespace accrue::accelerate
