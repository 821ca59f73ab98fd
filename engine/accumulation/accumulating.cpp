// SPDX-License-Identifier: Apache-2.0
// The gates that llm and colossalai share. The originals count in every wrapper, so the wrappers drift apart, and their
// no_sync begins after the forward, so every micro-step reduces. Here all share one window, which is reduced once.
// Source: the gates of llm.engine.accumulation and colossalai.utils.gradient_accumulation.
#include "accrue/accumulation/accumulating.h"

#include <optional>
#include <stdexcept>
#include <utility>

#include "accrue/run/fields/choice_names.h"

namespace accrue {
namespace {

constexpr const char* window_entry = "window";

StateDict with_window(StateDict state, const AccumulationWindow& window) {
  put_under(state, window_entry, window_state(window.position()));
  return state;
}

/// None if the state is from an object that does not accumulate.
std::optional<WindowPosition> saved_position(const StateDict& state) {
  const StateDict part = take_under(state, window_entry);
  if (part.empty()) return std::nullopt;
  return window_position(part);
}

/// Errors: throws std::invalid_argument if the open window of `at`, with another N, is already as long as a window
/// here: its counter has missed the number at which this system steps.
void check_window_can_end(const WindowPosition& at, std::int64_t steps) {
  if (at.position() == 0 || at.at_boundary() || at.steps() == steps || at.counter() < steps) return;
  throw std::invalid_argument("the state was taken after " + std::to_string(at.counter()) +
                              " micro-steps of a window of " + std::to_string(at.steps()) + ", and windows have " +
                              std::to_string(steps) + " here, so that this one would not end; make the wrapper with " +
                              std::to_string(at.steps()) +
                              ", or load the state into what it holds, inner(), to begin at a window's start");
}

std::string defects_of(Dialect dialect) {
  std::string names;
  const auto all = choice_names<Replay>();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (has_defect(dialect, static_cast<Replay>(i))) names += (names.empty() ? "" : ", ") + std::string(all[i]);
  return names;
}

}  // namespace

void check_steps(std::int64_t steps, const std::string& what) {
  if (steps < 1) throw std::invalid_argument(what + " is " + std::to_string(steps) + "; it is at least 1");
  if (steps > most_steps)
    throw std::invalid_argument(what + " is " + std::to_string(steps) + "; it is at most " +
                                std::to_string(most_steps));
}

WindowShape system_shape(Dialect dialect, std::int64_t steps, const std::string& what, const Replays& replay) {
  check_steps(steps, what);
  for (const Replay each : replay)
    if (!has_defect(dialect, each))
      throw std::invalid_argument(what + ": " + std::string(to_name(each)) +
                                  " is not one of this system's defects, which are " + defects_of(dialect));
  WindowShape shape;
  shape.knobs = preset(dialect);
  shape.knobs.replay = replay;
  shape.steps = steps;
  shape.batches_per_epoch = unknown_length;
  return shape;
}

SharedWindow make_call_window(Dialect dialect, std::int64_t steps, const std::string& who, const Replays& replay) {
  WindowShape shape = system_shape(dialect, steps, who + ": the number of micro-steps per update", replay);
  if (shape.knobs.replays(Replay::narrow_no_sync)) shape.knobs.reduce_when = ReduceWhen::every_micro_step;
  if (shape.knobs.replays(Replay::clip_partial_sums)) shape.knobs.clip_stage = ClipStage::every_micro_step;
  return std::make_shared<AccumulationWindow>(std::move(shape));
}

SharedWindow StepsOrWindow::window(Dialect dialect, const std::string& who, const Replays& replay) const {
  if (steps_) return make_call_window(dialect, *steps_, who, replay);
  if (!window_) throw std::invalid_argument(who + ": there is no window");
  return window_;
}

AccumulatingOptimizer::AccumulatingOptimizer(const AnyOptimizer& optimizer, GradSync* model, SharedWindow window)
    : OptimizerWrapper(optimizer),
      driver_(std::move(window), ClearGradients::user_if_empty, "the number of micro-steps per update", model) {}

void AccumulatingOptimizer::micro_step(const std::function<void(const MicroPlan&)>& backward) {
  if (window().peek()->sync) driver_.require_open();
  const MicroPlan micro = driver_.count();
  driver_.backward(micro.sync, [&] { backward(micro); });
  driver_.before_next_forward();
}

void AccumulatingOptimizer::backward(const at::Tensor& loss, BackwardOptions options) {
  // The window's gradient is that of sum_i L_i / N. Both originals divide before each backward.
  micro_step([&](const MicroPlan& micro) { inner().backward(loss / micro.division.value, options); });
}

StepOutcome AccumulatingOptimizer::step(const Closure& closure) {
  return driver_.step([&] { return inner().step(closure); });
}

void AccumulatingOptimizer::zero_grad(bool set_to_none) {
  driver_.clear([&] { inner().zero_grad(set_to_none); });
}

StateDict AccumulatingOptimizer::state_dict() const {
  return with_window(inner().state_dict(), window());
}

void AccumulatingOptimizer::load_state_dict(const StateDict& state) {
  const std::optional<WindowPosition> position = saved_position(state);
  if (position) check_window_can_end(*position, window().shape().steps);
  inner().load_state_dict(state);
  if (position) driver_.window().restore_counts(*position);
}

std::string AccumulatingOptimizer::text() const {
  return std::string(name()) + ": " + std::to_string(window().open_micro_steps()) + " of " +
         std::to_string(window().shape().steps) + " micro-steps done\n" + inner().text();
}

AccumulatingScheduler::AccumulatingScheduler(const AnyScheduler& scheduler, SharedWindow window)
    : SchedulerWrapper(scheduler), window_(std::move(window)) {}

void AccumulatingScheduler::step(std::optional<std::int64_t> epoch) {
  for (std::int64_t ticks = window_->call_schedule(); ticks > 0; --ticks) {
    // A window without micro-steps belongs to the schedule alone: there is no optimizer to compare with.
    if (!std::exchange(warned_, true) && window_->micro_steps_done() > 0 && window_->position().updates() == 0)
      warn_of_schedule_before_step();
    step_inner(epoch);
  }
}

std::string AccumulatingScheduler::text() const {
  return std::string(name()) + ": one step per window of " + std::to_string(window_->shape().steps) + "\n" +
         inner().text();
}

StateDict AccumulatingScheduler::state_dict() const {
  return with_window(inner().state_dict(), *window_);
}

void AccumulatingScheduler::load_state_dict(const StateDict& state) {
  const std::optional<WindowPosition> position = saved_position(state);
  inner().load_state_dict(state);
  if (position) window_->restore_schedule(*position);
}

}  // namespace accrue
