// SPDX-License-Identifier: Apache-2.0
// The scopes that an Accelerator hands out. They hold the models weakly: free_memory(), or the Accelerator's own end,
// may come first, and then there is nothing to put back.
#include <ATen/SequenceNumber.h>

#include <algorithm>
#include <utility>

#include "accelerator_impl.h"

namespace accrue::accelerate {
namespace {

/// Stretches that are remembered per model; a backward that comes after as many no_sync() scopes reduces.
constexpr std::size_t remembered_stretches = 1024;

/// A model whose sync a scope changed, and what it was before.
struct Kept {
  std::weak_ptr<PreparedModel> model;
  bool enabled;
};

std::vector<std::size_t> each_once(std::vector<std::size_t> indices) {
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

}  // namespace

AtEnd Accelerator::Impl::keep_quiet(const std::vector<std::size_t>& chosen) {
  std::vector<Kept> kept;
  for (const std::size_t i : chosen) {
    kept.push_back({models[i], models[i]->ddp->sync_enabled()});
    models[i]->ddp->set_sync_enabled(false);
    ++models[i]->open_groups;
  }
  return AtEnd([kept = std::move(kept)] {
    for (const Kept& each : kept) {
      const auto model = each.model.lock();
      if (!model) continue;
      model->ddp->set_sync_enabled(each.enabled);
      --model->open_groups;
    }
  });
}

AccumulateScope Accelerator::accumulate_models(std::vector<std::size_t> models) {
  impl_->look();
  impl_->plan = state().begin_micro_step();
  if (state().on_empty_batch()) impl_->expect_by_hand();
  impl_->last_named = each_once(std::move(models));
  if (impl_->plan.update || state().sync_each_batch()) {
    impl_->before_forward(*impl_->last_named);
    return AccumulateScope(AtEnd(nullptr));
  }
  return AccumulateScope(impl_->keep_quiet(*impl_->last_named));
}

NoSyncScope Accelerator::no_sync_models(std::vector<std::size_t> models) {
  impl_->look();
  std::vector<Kept> kept;
  for (const std::size_t i : each_once(std::move(models))) {
    const auto& model = impl_->models[i];
    kept.push_back({model, model->ddp->sync_enabled()});
    model->ddp->set_sync_enabled(false);
    ++model->no_syncs;
  }
  return NoSyncScope([kept = std::move(kept), begin = at::sequence_number::peek()] {
    const QuietStretch stretch{begin, at::sequence_number::peek()};
    for (const Kept& each : kept) {
      const auto model = each.model.lock();
      if (!model) continue;
      static_cast<void>(model->arrivals.moved());  // what came by a backward of the caller's own stays local
      model->ddp->set_sync_enabled(each.enabled);
      --model->no_syncs;
      model->quiet.push_back(stretch);
      if (model->quiet.size() > remembered_stretches) model->quiet.pop_front();
    }
  });
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
