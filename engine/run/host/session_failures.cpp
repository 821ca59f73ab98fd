// SPDX-License-Identifier: Apache-2.0
// Handles the ends of ranks. Once one is lost no other continues, because the survivors' memory is undefined: the run
// restarts from its last checkpoint or ends. A lost rank makes its peers fail too. Exits that this would explain are
// held back for a moment, and dropped if the rank that caused them is found.
#include <fmt/format.h>
#include <signal.h>

#include "rank_text.h"
#include "run_session.h"

namespace accrue {
namespace {

constexpr std::size_t log_tail_bytes = 2048;

}  // namespace

/// Empty if the rank has printed nothing.
std::string RunSession::log_advice(std::size_t rank) const {
  return ranks_[rank].log_tail.empty() ? "" : fmt::format("See the end of ranks/{}.log", rank);
}

/// Advice about a failure if the rank itself gave none. The next state says how the run continues.
std::string RunSession::advice_for(std::size_t rank, const ExitReport& exit) const {
  if (exit.lost) return "See what its launcher says of it; started again, the same command goes on";
  if (exit.signal == SIGKILL)
    return "Unless a user killed it, the system probably ran out of memory: use fewer ranks or a smaller micro-batch";
  return log_advice(rank);
}

void RunSession::note_exit(std::size_t rank, ExitReport exit) {
  RankSlot& slot = ranks_[rank];
  while (read_rank(rank)) {  // everything it still sent
  }
  slot.exit = exit;
  progress_.gone(rank);
  const bool clean = exit.signal == 0 && (exit.status == 0 || exit.status == exit_status(ErrorCode::cancelled));
  if (clean || slot.told_to_end) {
    if (slot.failure_report && !slot.told_to_end) store_and_publish(std::move(*slot.failure_report));
    slot.failure_report.reset();
    return;
  }
  const RunEvent event = failure_event(rank, exit);
  const auto& failed = std::get<RankFailed>(event.body);
  const ErrorCode code = code_of_name(failed.class_name);
  if (failures_.hold_back(rank, exit, code, Clock::now())) return;
  slot.failure_report.reset();
  emit(event.rank, event.body);
  fail_run(code, failed.message, {});
}

RunEvent RunSession::failure_event(std::size_t rank, ExitReport exit) {
  RankSlot& slot = ranks_[rank];
  const auto& last = progress_.last(rank);
  RankFailed failed;
  failed.class_name = to_string(code_of_exit(exit));
  if (slot.failure_report) failed = std::get<RankFailed>(slot.failure_report->body);
  const auto number = static_cast<std::int64_t>(rank);
  if (failed.phase.empty()) failed.phase = last.phase;
  if (failed.update == 0) failed.update = last.update;
  const RankGrid& grid = order_.plan.grid;
  if (failed.message.empty())
    failed.message = cause_text(name_of(order_.plan.grid, rank), exit) + doing_text(last, last_update_);
  else if (grid.pipeline * grid.tensor > 1 && code_of_name(failed.class_name) != ErrorCode::numerics)  // of all ranks
    failed.message = name_of(order_.plan.grid, rank) + doing_text(last, last_update_) + ": " + failed.message;
  if (failed.micro_step == 0) failed.micro_step = last.micro_step;
  if (failed.log_tail.empty()) failed.log_tail = last_lines(slot.log_tail, log_tail_bytes);
  failed.signal = exit.signal;
  failed.exit_status = exit.status;
  if (failed.what_to_do.empty()) failed.what_to_do = advice_for(rank, exit);
  return {number, -1, 0, std::move(failed)};
}

/// The first failure is the run's; the other ranks are killed.
void RunSession::fail_run(ErrorCode code, std::string message, std::string what_to_do) {
  if (!what_to_do.empty()) warn(to_string(code), message, std::move(what_to_do));
  failures_.note(code, message);
  if (ladder_.failed() || ladder_.ending() == Ending::kill) return;
  ladder_.fail();
  kill_ranks();  // the survivors' memory is undefined
  if (all_gone()) return;
  set_state(may_restart() ? RunState::restarting : RunState::stopping, std::move(message));
}

/// No cause was found in time: the exits that were held back are the failure.
void RunSession::settle_failures() {
  for (const auto& [rank, exit] : failures_.take_held_back()) {
    const RunEvent event = failure_event(rank, exit);
    ranks_[rank].failure_report.reset();
    if (ladder_.failed() || ladder_.asked_by_user() || ladder_.ending() == Ending::kill) continue;
    if (const auto awaited = progress_.awaited(Clock::now())) {
      fail_motionless(*awaited, fmt::format("rank {} gave up waiting for it", rank));
      continue;
    }
    const auto failed = std::get<RankFailed>(event.body);
    emit(event.rank, event.body);
    fail_run(code_of_name(failed.class_name), failed.message, {});
  }
}

/// A rank that has not ended counts as failed: another one gave up waiting for it, or it is stopped.
void RunSession::fail_motionless(std::size_t rank, const std::string& why) {
  const auto& last = progress_.last(rank);
  const auto seconds = std::chrono::duration<double>(Clock::now() - progress_.last_progress(rank)).count();
  RankFailed failed;
  failed.class_name = to_string(ErrorCode::hang);
  failed.message = fmt::format("{} made no progress for {:.0f} s{}; {}", name_of(order_.plan.grid, rank), seconds,
                               place_of(last), why);
  failed.what_to_do = advice_for(rank, {});
  failed.phase = last.phase;
  failed.log_tail = last_lines(ranks_[rank].log_tail, log_tail_bytes);
  failed.update = last.update;
  failed.micro_step = last.micro_step;
  end_rank(ranks_[rank]);
  while (read_rank(rank)) {  // its earlier messages come first
  }
  emit(static_cast<std::int64_t>(rank), failed);
  fail_run(ErrorCode::hang, failed.message, {});
}

/// Only their launcher restarts the ranks of another launcher.
bool RunSession::may_restart() const {
  return launches_ranks() && ladder_.restart_allowed() &&
         failures_.may_restart(order_.plan.spec.launch.max_restarts, Clock::now());
}

}  // namespace accrue
