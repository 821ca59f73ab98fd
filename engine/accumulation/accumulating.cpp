// SPDX-License-Identifier: Apache-2.0
// The gates that llm and colossalai share. Problem: the originals count in every wrapper, so the wrappers drift apart,
// and their no_sync begins after the forward, so every micro-step reduces. Choice: one window answers all of them, and
// the reduction is a call of its own, finish(), made once a group. Cost: none that can be measured beside a backward.
// Source: the gates of llm.engine.accumulation and colossalai.utils.gradient_accumulation.
#include "accrue/accumulation/accumulating.h"

#include <optional>
#include <stdexcept>
#include <utility>

namespace accrue {
namespace {

constexpr const char* window_entry = "window";

StateDict with_window(StateDict state, const AccumulationWindow& window) {
  put_under(state, window_entry, window_state(window.position()));
  return state;
}

/// Errors: throws std::invalid_argument where the state is that of something that does not accumulate.
WindowPosition saved_position(const StateDict& state) {
  const StateDict part = take_under(state, window_entry);
  if (part.empty())
    throw std::invalid_argument(
        "the state has no entries under \"window.\", so it is not one of an accumulating wrapper; load it into what "
        "the wrapper holds, inner(), to begin at a group's start");
  return window_position(part);
}

/// Errors: throws std::invalid_argument where the open group of `at`, which had another N, is as long already as a
/// group is here: its counter has missed the number at which this system steps.
void check_group_can_end(const WindowPosition& at, std::int64_t steps) {
  if (at.position == 0 || at.at_boundary || at.steps == steps || at.counter < steps) return;
  throw std::invalid_argument("the state was taken after " + std::to_string(at.counter) +
                              " micro-steps of a group of " + std::to_string(at.steps) + ", and groups have " +
                              std::to_string(steps) + " here, so that this one would not end; make the wrapper with " +
                              std::to_string(at.steps) +
                              ", or load the state into what it holds, inner(), to begin at a group's start");
}

}  // namespace

void check_steps(std::int64_t steps, const std::string& what) {
  if (steps < 1) throw std::invalid_argument(what + " is " + std::to_string(steps) + "; it is at least 1");
  if (steps > most_steps)
    throw std::invalid_argument(what + " is " + std::to_string(steps) + "; it is at most " +
                                std::to_string(most_steps));
}

SharedWindow make_call_window(Dialect dialect, std::int64_t steps, const std::string& who, const Replays& replay) {
  check_steps(steps, who + ": the number of micro-steps per update");
  for (const Replay each : replay)
    if (!has_defect(dialect, each))
      throw std::invalid_argument(who + ": one of the defects to replay is not this system's");
  WindowShape shape;
  shape.knobs = preset(dialect);
  shape.knobs.replay = replay;
  if (shape.knobs.replays(Replay::narrow_no_sync)) shape.knobs.reduce_when = ReduceWhen::every_micro_step;
  shape.steps = steps;
  shape.batches_per_epoch = unknown_length;
  return std::make_shared<AccumulationWindow>(std::move(shape));
}

AccumulatingOptimizer::AccumulatingOptimizer(const AnyOptimizer& optimizer, GradSync* model, SharedWindow window)
    : inner_(optimizer.shared()), model_(model), window_(std::move(window)) {
  if (!window_) throw std::invalid_argument("an accumulating optimizer was given no window");
}

void AccumulatingOptimizer::count_and_run(const std::function<void(const MicroPlan&)>& backward) {
  if (model_ != nullptr && !model_->sync_enabled() && window_->peek()->sync)
    throw std::logic_error(
        "this backward has to reduce the gradients, but a no_sync scope is still open; close it before the group's "
        "last "
        "backward");
  const MicroPlan micro = window_->count();
  std::optional<GradSync::NoSyncScope> quiet;
  if (model_ != nullptr && !micro.sync) quiet.emplace(*model_);
  backward(micro);
  if (model_ != nullptr && micro.sync) model_->finish();
}

void AccumulatingOptimizer::backward(const at::Tensor& loss) {
  count_and_run([&](const MicroPlan& micro) { inner_->backward(loss / micro.division.value); });
}

StepOutcome AccumulatingOptimizer::step() {
  if (!window_->take_boundary()) return StepOutcome::accumulated;
  const StepOutcome outcome = inner_->step();
  window_->report(outcome);
  return outcome;
}

void AccumulatingOptimizer::zero_grad(bool set_to_none) {
  if (window_->open_micro_steps() != 0) return;
  inner_->zero_grad();
  if (!set_to_none) return;
  for (const at::Tensor& parameter : inner_->parameters()) parameter.mutable_grad().reset();
}

StateDict AccumulatingOptimizer::state_dict() const {
  return with_window(inner_->state_dict(), *window_);
}

void AccumulatingOptimizer::load_state_dict(const StateDict& state) {
  const WindowPosition position = saved_position(state);
  check_group_can_end(position, window_->shape().steps);
  inner_->load_state_dict(state);
  window_->restore_counts(position);
}

torch::optim::Optimizer& AccumulatingOptimizer::torch() {
  return inner_->torch();
}

AccumulatingScheduler::AccumulatingScheduler(const AnyScheduler& scheduler, SharedWindow window)
    : inner_(scheduler.shared()), window_(std::move(window)) {
  if (!window_) throw std::invalid_argument("an accumulating scheduler was given no window");
}

void AccumulatingScheduler::step() {
  for (std::int64_t ticks = window_->call_schedule(); ticks > 0; --ticks) step_inner();
}

StateDict AccumulatingScheduler::state_dict() const {
  return with_window(inner_->state_dict(), *window_);
}

void AccumulatingScheduler::load_state_dict(const StateDict& state) {
  const WindowPosition position = saved_position(state);
  inner_->load_state_dict(state);
  window_->restore_schedule(position);
}

}  // namespace accrue
