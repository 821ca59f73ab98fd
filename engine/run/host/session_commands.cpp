// SPDX-License-Identifier: Apache-2.0
// Pause, step, stop, checkpoint and kill. Everything that must not interrupt a collective uses the hold agreement; only
// kill does not.
#include <fmt/format.h>

#include "accrue/run/base/counted.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/window/inside_windows.h"
#include "hold_places.h"
#include "run_session.h"

namespace accrue {
namespace {

tl::unexpected<Error> refused(std::string why) {
  return fail(ErrorCode::config, std::move(why));
}

bool is_training(RunState state) {
  return state == RunState::running || state == RunState::degraded;
}

}  // namespace

Result<void> RunSession::command(const HostCommand& command) {
  if (over()) return refused("the run has ended");
  switch (command.verb) {
    case HostVerb::status:
      return {};
    case HostVerb::pause:
      return pause();
    case HostVerb::proceed:
      return proceed();
    case HostVerb::step_micro_step:
      return step(StepUnit::micro_step);
    case HostVerb::step_update:
      return step(StepUnit::update);
    case HostVerb::step_phase:
      return step(StepUnit::phase);
    case HostVerb::stop:
      return stop();
    case HostVerb::checkpoint:
      return checkpoint();
    case HostVerb::checkpoint_and_stop:
      return checkpoint_and_stop();
    case HostVerb::set_steps:
      return set_steps(command.steps);
    case HostVerb::kill:
      kill_all();
      return {};
    case HostVerb::shut_down:
      ladder_.close(Clock::now());
      return ladder_.ending() == Ending::none ? stop() : Result<void>();
  }
  return refused("unknown command");
}

Result<void> RunSession::pause() {
  if (!is_training(state_)) return refused("only a run that is training can be paused");
  set_state(state_, fmt::format("Pausing after this {}", stretch_of(order_.plan.spec)));
  apply(agreement_.begin(HoldAgreement::Goal::hold));
  return {};
}

Result<void> RunSession::proceed() {
  if (ladder_.ending() != Ending::none) return refused("the run is ending");
  if (agreement_.stage() == HoldAgreement::Stage::open) return refused("the run is not paused");
  apply(agreement_.release());
  progress_.restart(Clock::now());
  set_state(RunState::running, "Running");
  return {};
}

Result<void> RunSession::step(StepUnit unit) {
  if (state_ != RunState::paused) return refused("only a paused run can be stepped");
  if (unit == StepUnit::phase && own_loop_)
    return refused("a program's own loop has no phases to stop after; step to the next micro-step");
  const bool inside = !own_loop_ && stops_inside_windows(order_.plan.spec);
  if (unit == StepUnit::phase && !inside)
    return refused(
        "the stages of a pipeline work on several micro-steps at once, so there is no moment between two phases; step "
        "to the next update");
  const auto at = agreement_.micro_step();
  const StepPhase phase = agreement_.phase();
  progress_.restart(Clock::now());
  if (unit == StepUnit::phase) {
    set_state(RunState::running, "Stepping to the next phase");
    apply(agreement_.advance_phase());
    return {};
  }
  // Inside an unfinished micro-step the remaining distance is shorter.
  const bool before_backward = phase == StepPhase::forward || phase == StepPhase::scale;
  const bool before_end = phase != StepPhase::none && phase != StepPhase::zero;
  const auto target = unit == StepUnit::update ? next_boundary(order_.plan, before_end ? at - 1 : at)
                      : before_backward        ? at
                                               : stop_after(at + 1);
  set_state(RunState::running, fmt::format("Stepping to micro-step {}", target));
  apply(unit == StepUnit::micro_step && inside ? agreement_.advance_in(target) : agreement_.advance_to(target));
  return {};
}

/// Before all ranks have joined there is nothing to agree on, and a rank that waits for its peers receives no command:
/// it is killed.
Result<void> RunSession::stop() {
  if (ladder_.ending() == Ending::stop || ladder_.ending() == Ending::kill)
    return refused("the run is stopping already");
  if (ladder_.refuse_restart()) {  // its ranks are already being killed
    set_state(RunState::stopping, "Stopping without a restart");
    return {};
  }
  blamed_.clear();
  ladder_.stop(Clock::now(), all_joined());
  set_state(RunState::stopping, fmt::format("Stopping after this {}", stretch_of(order_.plan.spec)));
  if (all_joined()) apply(agreement_.begin(HoldAgreement::Goal::stop));
  return {};
}

Result<void> RunSession::checkpoint() {
  if (!is_training(state_) && state_ != RunState::paused) return refused("the run is not training");
  broadcast({RankCommandKind::checkpoint, 0});
  return {};
}

Result<void> RunSession::checkpoint_and_stop() {
  if (ladder_.failed()) return stop();  // no rank is left to save; this cancels the restart
  if (ladder_.ending() != Ending::none) return refused("the run is ending already");
  if (!all_joined()) return stop();  // nothing has been trained yet
  ladder_.save(Ending::save, Clock::now());
  set_state(RunState::stopping, "Stopping after this update, with a checkpoint");
  broadcast({RankCommandKind::checkpoint_and_stop, 0});
  progress_.restart(Clock::now());
  apply(agreement_.release());
  return {};
}

/// Checks the run that would result from the next boundary on.
Result<void> RunSession::check_steps(std::int64_t steps) const {
  const RunPlan& plan = order_.plan;
  if (drops_tail(plan.knobs) && plan.knobs.schedule_clock == ScheduleClock::epoch)
    return refused("the schedule counts epochs, and with dropped tails N decides where an epoch ends");
  WindowShape shape = plan.window;
  shape.set_steps_after(last_update_ ? last_update_->update : 0, steps);
  if (!shape.max_updates || shape.max_epochs) return {};
  const std::int64_t updates = total_windows(shape).updates;
  if (updates >= *shape.max_updates) return {};
  return refused(fmt::format("with N = {} an epoch of {} fills no window, so the run would end after {} of {}", steps,
                             counted(shape.batches_per_epoch, "micro-step"), updates,
                             counted(*shape.max_updates, "update")));
}

/// The ranks receive it one after another, and agree in the exchange of a boundary when it takes effect.
Result<void> RunSession::set_steps(std::int64_t steps) {
  if (!is_training(state_) && state_ != RunState::paused) return refused("the run is not training");
  if (own_loop_) return refused("a program's own loop decides about N");
  if (std::string why = why_steps_stay(order_.plan.spec); !why.empty()) return refused(std::move(why));
  const SpecField& field = *find_field("accumulation.steps");
  if (static_cast<double>(steps) < field.minimum || static_cast<double>(steps) > field.maximum)
    return refused(
        fmt::format("N must be from {:.0f} to {:.0f}, and {} was requested", field.minimum, field.maximum, steps));
  const WindowShape& shape = order_.plan.window;
  const bool is_set =
      shape.steps_now() == steps && (!shape.steps_set.empty() || !has_length_schedule(order_.plan.knobs.group_length));
  if (is_set && requested_steps_ == 0) return refused(fmt::format("N is {} already", steps));
  if (auto fits = check_steps(steps); !fits) return fits;
  requested_steps_ = is_set ? 0 : steps;  // 0: withdraws a request that the ranks have not taken yet
  broadcast({.kind = RankCommandKind::set_steps, .steps = steps});
  return {};
}

void RunSession::kill_all() {
  ladder_.kill();
  kill_ranks();
  set_state(RunState::stopping, "Killing the ranks");
}

void RunSession::apply(const HoldAgreement::Move& move) {
  for (const auto& command : move.broadcast) broadcast(command);
  if (!move.reached || ladder_.ending() != Ending::none) return;
  std::string detail = place_text();
  if (move.unprompted && !last_numerics_.empty()) detail += ": " + std::exchange(last_numerics_, {});
  set_state(RunState::paused, std::move(detail));
}

void RunSession::broadcast(const RankCommand& command) {
  for (auto& slot : ranks_)
    if (!slot.gone()) slot.send(command);
}

std::string RunSession::place_text() const {
  const std::int64_t micro_step = agreement_.micro_step();
  if (micro_step <= 0) return "Paused before the first micro-step";
  if (own_loop_) return fmt::format("Paused after micro-step {}", micro_step);
  return paused_text(order_.plan, micro_step, agreement_.phase());
}

/// The first micro-step, from this one on, after which the ranks can pause.
std::int64_t RunSession::stop_after(std::int64_t micro_step) const {
  return own_loop_ ? micro_step : next_stop(order_.plan, micro_step);
}

}  // namespace accrue
