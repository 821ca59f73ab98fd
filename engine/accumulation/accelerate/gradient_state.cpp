// SPDX-License-Identifier: Apache-2.0
// The window counts; this class tells it what a prepared loader foresees. Before the first micro-step the flag is true,
// as in the original, so code that never enters accumulate() steps every time.
#include "accrue/accumulation/accelerate/gradient_state.h"

#include <algorithm>
#include <ostream>

#include "accrue/run/fields/spec.h"

namespace accrue::accelerate {
namespace {

WindowShape shape_of(const AcceleratorOptions& options, const GradientAccumulationPlugin& plugin, std::int64_t world) {
  AccumulationSpec spec;
  spec.dialect = Dialect::accelerate;
  spec.sync_with_dataloader = plugin.sync_with_dataloader;
  spec.sync_each_batch = plugin.sync_each_batch;
  spec.split_batches = options.split_batches;
  spec.step_scheduler_with_optimizer = options.step_scheduler_with_optimizer;
  WindowShape shape;
  shape.knobs = resolve_knobs(spec);
  shape.knobs.micro_bump = options.replay.adjust_scheduler && plugin.adjust_scheduler;
  shape.steps = plugin.num_steps.value_or(1);
  shape.batches_per_epoch = unknown_length;
  shape.world = world;
  return shape;
}

}  // namespace

GradientState::GradientState(const AcceleratorOptions& options, std::int64_t world)
    : options_(options),
      plugin_(resolve_plugin(options.gradient_accumulation_steps, options.gradient_accumulation_plugin,
                             options.environment)),
      window_(std::make_shared<AccumulationWindow>(shape_of(options, plugin_, world))) {
  set_sync_gradients(true);
}

void GradientState::set_sync_gradients(bool sync) {
  if (sync != sync_gradients()) window_->force_boundary(sync);
}

std::int64_t GradientState::num_steps() const {
  const std::int64_t set = window_->position().next_steps();
  return set > 0 ? set : window_->shape().steps;
}

void GradientState::set_num_steps(std::int64_t steps) {
  window_->set_steps(checked_steps(steps));
}

MicroPlan GradientState::begin_micro_step() {
  if (sync_with_dataloader() && end_of_dataloader()) window_->announce_end(1);
  if (window_->open_micro_steps() == 0) uneven_window_ = false;
  uneven_window_ = some_rank_is_empty();
  return window_->count();
}

bool GradientState::some_rank_is_empty() const {
  return uneven_window_ || (in_dataloader() && active_.back()->some_rank_is_empty());
}

void GradientState::reset_step() {
  window_->lose_open_window(true);
}

void GradientState::leave(const ActiveLoader& loader) {
  std::erase(active_, &loader);
}

void GradientState::replace(PreparedLoaderBase& loader, PreparedLoaderBase& with) noexcept {
  std::replace(loaders_.begin(), loaders_.end(), &loader, &with);
}

void GradientState::remove(PreparedLoaderBase& loader) {
  std::erase(loaders_, &loader);
}

std::ostream& operator<<(std::ostream& out, const GradientState& state) {
  const auto word = [](bool yes) { return yes ? "true" : "false"; };
  return out << "Sync Gradients: " << word(state.sync_gradients())
             << "\nAt end of current dataloader: " << word(state.end_of_dataloader())
             << "\nExtra samples added: " << state.remainder() << "\nGradient accumulation plugin: num_steps "
             << state.num_steps() << ", adjust_scheduler " << word(state.plugin().adjust_scheduler)
             << ", sync_with_dataloader " << word(state.sync_with_dataloader()) << ", sync_each_batch "
             << word(state.sync_each_batch()) << '\n';
}

}  // namespace accrue::accelerate
