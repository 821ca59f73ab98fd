// SPDX-License-Identifier: Apache-2.0
// In the originals every wrapper decides by itself whether a call counts, reduces or steps. Here the window has decided
// before any of them is called, and a reduction is one call after the backward. The cost is negligible compared with a
// backward.
#include "accrue/accumulation/accumulation_driver.h"

#include <stdexcept>

namespace accrue {

Cover::Cover(const DrivenModels& models) {
  for (const auto& each : models) {
    before_.emplace_back(each, each->sync.sync_enabled());
    each->sync.set_sync_enabled(false);
  }
}

Cover::~Cover() {
  for (const auto& [model, enabled] : before_)
    if (const auto alive = model.lock()) alive->sync.set_sync_enabled(enabled);
}

AccumulationDriver::AccumulationDriver(SharedWindow window, ClearGradients gate, std::string name_of_steps,
                                       GradSync* sync)
    : window_(std::move(window)), gate_(gate), name_of_steps_(std::move(name_of_steps)) {
  if (!window_) throw std::invalid_argument("AccumulationDriver: there is no window");
  set_model(sync);
}

void AccumulationDriver::set_model(GradSync* sync) {
  models_.clear();
  if (sync != nullptr) models_.push_back(std::make_shared<DrivenModel>(*sync));
}

std::optional<MicroPlan> AccumulationDriver::next() {
  return planned_ = window_->next();
}

void AccumulationDriver::agree(GradSync& sync) {
  if (name_of_steps_.empty()) return;
  const std::int64_t set = window_->position().next_steps();
  const WindowShape& shape = window_->shape();
  std::vector<NamedNumber> mine = {{name_of_steps_, set > 0 ? set : shape.steps},
                                   {"the run's length in micro-steps (-1: open)", shape.max_iters.value_or(-1)}};
  if (declared_) mine.push_back(*declared_);
  // Compared once, and again after a change: an exchange of its own in every window would cost a latency.
  if (mine == agreed_) return;
  agreed_ = std::move(mine);
  sync.agree(agreed_);
}

void AccumulationDriver::before_forward(const DrivenModels& models) {
  for (const auto& each : models) {
    if (each->sync.sync_enabled()) agree(each->sync);
    each->sync.before_forward();
  }
}

void AccumulationDriver::before_next_forward() {
  if (models_.empty()) return;
  if (const auto next = window_->peek(); next && next->sync) before_forward();
}

Cover AccumulationDriver::cover(bool reduces) const {
  return reduces ? Cover() : Cover(models_);
}

void AccumulationDriver::require_open() const {
  for (const auto& each : models_)
    if (!each->sync.sync_enabled())
      throw std::logic_error(
          "the gradients have to be reduced now, but a no_sync scope, or the optim_context of an earlier micro-step, "
          "is "
          "still open; close it before the backward or the step that needs the gradients of all ranks");
}

void AccumulationDriver::backward(bool reduces, const std::function<void()>& differentiate) {
  if (reduces) require_open();
  const Cover scope = cover(reduces);
  // Before the backward: one that throws may have added gradients, which settle() must reduce.
  for (const auto& each : models_) each->unreduced = true;
  differentiate();
  if (reduces) reduce();
}

void AccumulationDriver::reduce() {
  for (const auto& each : models_) reduce(*each);
}

void AccumulationDriver::reduce(DrivenModel& model) {
  agree(model.sync);
  model.sync.finish();
  model.unreduced = false;
  ++model.reductions;
}

void AccumulationDriver::settle() {
  for (const auto& each : models_) {
    if (!each->unreduced) continue;
    require_open();
    reduce(*each);
  }
}

bool AccumulationDriver::clips_partial_sums() const {
  return window_->shape().knobs.clip_stage == ClipStage::every_micro_step;
}

StepOutcome AccumulationDriver::step(const std::function<StepOutcome()>& take) {
  const bool due = planned_ ? planned_->update : window_->take_boundary();
  if (gate() != ClearGradients::engine && !due) return StepOutcome::accumulated;
  const StepOutcome outcome = take();
  if (due) window_->report(outcome);
  return outcome;
}

bool AccumulationDriver::clear(const std::function<void()>& clear) {
  if (gate() == ClearGradients::user_if_empty && window_->open_micro_steps() > 0) return false;
  if (gate() == ClearGradients::user_if_boundary && !window_->boundary_due()) return false;
  clear();
  for (const auto& each : models_) each->unreduced = false;
  return true;
}

}  // namespace accrue
