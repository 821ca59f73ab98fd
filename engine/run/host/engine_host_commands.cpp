// SPDX-License-Identifier: Apache-2.0
// Pause, step, stop, checkpoint and kill. Whatever must not interrupt a collective goes through the hold agreement;
// only kill does not.
#include <fmt/format.h>
#include <signal.h>

#include "accrue/run/choice_names.h"
#include "accrue/run/counted.h"
#include "accrue/run/inside_windows.h"
#include "accrue/run/spec_fields.h"
#include "engine_host_session.h"

namespace accrue {
namespace {

/// What the ranks finish before they pause or stop.
const char* stretch_of(const RunSpec& spec) {
  return stops_inside_windows(spec) ? "micro-step" : "window";
}

tl::unexpected<Error> refused(std::string why) {
  return fail(ErrorCode::config, std::move(why));
}

bool is_training(RunState state) {
  return state == RunState::running || state == RunState::degraded;
}

}  // namespace

Result<void> RunSession::command(const HostCommand& command) {
  if (over_) return refused("the run has ended");
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
      strict_ladder_ = true;
      if (ending_ == Ending::none) return stop();
      rung_ends_ = std::min(rung_ends_, Clock::now() + settings_.stop_grace);
      return {};
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
  if (ending_ != Ending::none) return refused("the run is ending");
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
  // Inside a micro-step that is not done there is less to go.
  const bool before_backward = phase == StepPhase::forward || phase == StepPhase::scale;
  const bool before_end = phase != StepPhase::none && phase != StepPhase::zero;
  const auto target = unit == StepUnit::update ? next_boundary(before_end ? at - 1 : at)
                      : before_backward        ? at
                                               : next_stop(at + 1);
  set_state(RunState::running, fmt::format("Stepping to micro-step {}", target));
  apply(unit == StepUnit::micro_step && inside ? agreement_.advance_in(target) : agreement_.advance_to(target));
  return {};
}

/// Before all ranks have joined there is nothing to agree on, and a rank that waits for its peers hears no command: it
/// is killed.
Result<void> RunSession::stop() {
  if (stop_sent_ || ending_ == Ending::killed_by_user) return refused("the run is stopping already");
  if (ending_ == Ending::failure) {
    restart_refused_ = true;  // its ranks are being killed already
    set_state(RunState::stopping, "Stopping without a restart");
    return {};
  }
  blamed_.clear();
  ending_ = Ending::by_user;
  stop_sent_ = true;
  rung_ = Rung::asked;
  rung_ends_ = Clock::now() + settings_.stop_grace;
  const bool met = ready_count() == ranks_.size();
  set_state(RunState::stopping, fmt::format("Stopping after this {}", stretch_of(order_.plan.spec)));
  if (met) {
    apply(agreement_.begin(HoldAgreement::Goal::stop));
  } else {
    rung_ends_ = Clock::now();
  }
  return {};
}

Result<void> RunSession::checkpoint() {
  if (!is_training(state_) && state_ != RunState::paused) return refused("the run is not training");
  broadcast({RankCommandKind::checkpoint, 0});
  return {};
}

Result<void> RunSession::checkpoint_and_stop() {
  if (ending_ == Ending::failure) return stop();  // no rank is left that could save; this calls off the restart
  if (ending_ != Ending::none) return refused("the run is ending already");
  if (ready_count() < ranks_.size()) return stop();  // nothing has been trained that could be saved
  ending_ = Ending::by_user;
  rung_ = Rung::asked;
  rung_ends_ = Clock::time_point::max();  // a window may be long; progress is watched instead
  set_state(RunState::stopping, "Stopping after this update, with a checkpoint");
  broadcast({RankCommandKind::checkpoint_and_stop, 0});
  progress_.restart(Clock::now());
  apply(agreement_.release());
  return {};
}

/// What the run would become from the next boundary on.
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

/// The ranks receive it one after another, and agree in the exchange of a boundary from which one it takes effect.
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
  requested_steps_ = is_set ? 0 : steps;  // 0: a request that the ranks have not taken yet is withdrawn
  broadcast({.kind = RankCommandKind::set_steps, .steps = steps});
  return {};
}

void RunSession::kill_all() {
  ending_ = Ending::killed_by_user;
  kill_ranks();
  set_state(RunState::stopping, "Killing the ranks");
}

void RunSession::apply(const HoldAgreement::Move& move) {
  for (const auto& command : move.broadcast) broadcast(command);
  if (!move.reached || ending_ != Ending::none) return;
  std::string detail = place_text(agreement_.micro_step(), agreement_.phase());
  if (move.unprompted && !last_numerics_.empty()) detail += ": " + std::exchange(last_numerics_, {});
  set_state(RunState::paused, std::move(detail));
}

void RunSession::broadcast(const RankCommand& command) {
  for (auto& slot : ranks_)
    if (!slot.gone()) slot.send(command);
}

std::string RunSession::place_text(std::int64_t micro_step, StepPhase phase) const {
  if (micro_step <= 0) return "Paused before the first micro-step";
  if (own_loop_) return fmt::format("Paused after micro-step {}", micro_step);
  AccumulationWindow window(order_.plan.window);
  window.seek(micro_step - 1);
  const auto plan = window.next();
  if (!plan) return fmt::format("Paused after micro-step {}", micro_step);
  const std::string after = phase == StepPhase::none ? "at" : fmt::format("after {} of", to_string(phase));
  return fmt::format("Paused {} micro {} of {}, update {}", after, plan->position + 1, plan->window_size,
                     plan->window + 1);
}

/// The first micro-step, from this one on, after which the ranks can pause.
std::int64_t RunSession::next_stop(std::int64_t micro_step) const {
  if (micro_step == 0 || own_loop_ || stops_inside_windows(order_.plan.spec)) return micro_step;
  return next_boundary(micro_step - 1);
}

std::int64_t RunSession::next_boundary(std::int64_t micro_step) const {
  AccumulationWindow window(order_.plan.window);
  window.seek(micro_step);
  auto last = micro_step;
  while (const auto plan = window.next()) {
    last = plan->micro_step;
    if (plan->update) break;
  }
  return std::max(last, micro_step + 1);
}

}  // namespace accrue
