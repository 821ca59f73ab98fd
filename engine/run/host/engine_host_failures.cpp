// SPDX-License-Identifier: Apache-2.0
// Ends of ranks. Gang semantics: once a rank is lost no other goes on, and nothing in memory is trusted; what follows
// is a restart from the last commit or the end of the run. A rank that died of its own trouble is told from those that
// only lost it: exits that a lost peer explains are held back for a moment and dropped if a cause turns up.
#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>

#include "engine_host_session.h"
#include "run_folder.h"

namespace accrue {
namespace {

using namespace std::chrono_literals;

constexpr auto causes_may_turn_up = 400ms;
constexpr std::size_t log_tail_bytes = 2048;
constexpr std::int64_t max_fruitless_restarts = 2;
constexpr auto restart_window = std::chrono::minutes(10);  // launch.max_restarts is counted within it

ErrorCode code_of_name(const std::string& name) {
  for (int i = static_cast<int>(ErrorCode::unset); i <= static_cast<int>(ErrorCode::internal); ++i)
    if (name == to_string(static_cast<ErrorCode>(i))) return static_cast<ErrorCode>(i);
  return ErrorCode::internal;
}

/// A rank that says nothing but its exit status.
ErrorCode code_of_exit(const ExitReport& exit) {
  if (exit.signal != 0) return ErrorCode::peer_lost;
  switch (exit.status) {
    case 2:
      return ErrorCode::config;
    case 3:
      return ErrorCode::numerics;
    case 4:
      return ErrorCode::peer_lost;
    case 5:
      return ErrorCode::disk;
    default:
      return ErrorCode::internal;
  }
}

bool is_consequence(ErrorCode code, const ExitReport& exit) {
  return exit.signal == 0 && (code == ErrorCode::peer_lost || code == ErrorCode::hang || code == ErrorCode::rendezvous);
}

bool is_retryable(ErrorCode code) {
  return code == ErrorCode::peer_lost || code == ErrorCode::hang;
}

std::string cause_text(std::int64_t rank, const ExitReport& exit) {
  if (exit.signal == 0) return fmt::format("Rank {} ended with exit status {}", rank, exit.status);
  if (exit.signal == SIGKILL) return fmt::format("Rank {} was killed (signal 9)", rank);
  return fmt::format("Rank {} died of signal {} ({})", rank, exit.signal, ::strsignal(exit.signal));
}

std::string resume_advice(const RunOrder& order) {
  if (const CheckpointMark newest = newest_checkpoint(order.run_dir); newest.valid())
    return "Resume continues from update " + std::to_string(newest.update);
  const CheckpointSpec& wanted = order.plan.spec.checkpoint;
  const bool scheduled = wanted.every_updates > 0 || wanted.every_micro_steps > 0;
  return std::string("There is no checkpoint yet, so resuming starts over") +
         (scheduled ? "" : "; checkpoint.every_updates takes one now and then");
}

std::string advice_for(ErrorCode code, const ExitReport& exit, const RunOrder& order) {
  if (exit.signal == SIGKILL)
    return "Unless a user killed it, the system probably ran out of memory: use fewer ranks or a smaller "
           "micro-batch. " +
           resume_advice(order);
  if (exit.signal == 0 && (code == ErrorCode::config || code == ErrorCode::data)) return "See the end of its log";
  return "See the end of its log. " + resume_advice(order);
}

}  // namespace

void RunSession::note_exit(std::size_t rank, ExitReport exit) {
  RankSlot& slot = ranks_[rank];
  while (read_rank(rank)) {  // all it still had to say
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
  if (is_consequence(code, exit)) {
    consequences_.emplace_back(rank, exit);
    if (failures_settle_ == Clock::time_point{}) failures_settle_ = Clock::now() + causes_may_turn_up;
    return;
  }
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
  if (failed.message.empty()) {
    failed.message = cause_text(number, exit);
    if (!failed.phase.empty()) failed.message += fmt::format(" in phase \"{}\"", failed.phase);
  }
  if (failed.micro_step == 0) failed.micro_step = last.micro_step;
  if (failed.log_tail.empty()) failed.log_tail = last_lines(slot.log_tail, log_tail_bytes);
  failed.signal = exit.signal;
  failed.exit_status = exit.status;
  if (failed.what_to_do.empty()) failed.what_to_do = advice_for(code_of_name(failed.class_name), exit, order_);
  return {number, -1, 0, std::move(failed)};
}

/// The first failure is the run's; the others are ended.
void RunSession::fail_run(ErrorCode code, std::string message, std::string what_to_do) {
  if (!what_to_do.empty()) warn(to_string(code), message, std::move(what_to_do));
  if (!failure_ || ending_ == Ending::none) failure_ = Failure{code, message};
  if (ending_ == Ending::failure || ending_ == Ending::killed_by_user) return;
  if (ending_ == Ending::none) ending_ = Ending::failure;
  kill_ranks();  // nothing in the survivors' memory is trusted
  if (all_gone()) return;
  set_state(may_restart() ? RunState::restarting : RunState::stopping, std::move(message));
}

/// No cause turned up in time: what was taken for a consequence is the failure itself.
void RunSession::settle_failures() {
  failures_settle_ = {};
  for (const auto& [rank, exit] : std::exchange(consequences_, {})) {
    const RunEvent event = failure_event(rank, exit);
    ranks_[rank].failure_report.reset();
    const bool explained = ending_ == Ending::failure && failure_;
    if (explained || ending_ == Ending::by_user || ending_ == Ending::killed_by_user) continue;
    if (const auto awaited = progress_.awaited(Clock::now())) {
      fail_awaited(*awaited, rank);
      continue;
    }
    const auto failed = std::get<RankFailed>(event.body);
    emit(event.rank, event.body);
    fail_run(code_of_name(failed.class_name), failed.message, {});
  }
}

/// A rank gave up waiting for one that still runs: that one is the failure.
void RunSession::fail_awaited(std::size_t rank, std::size_t waited) {
  const auto& last = progress_.last(rank);
  const auto seconds = std::chrono::duration<double>(Clock::now() - progress_.last_progress(rank)).count();
  RankFailed failed;
  failed.class_name = to_string(ErrorCode::hang);
  failed.message = fmt::format("Rank {} made no progress for {:.0f} s{}; rank {} gave up waiting for it", rank, seconds,
                               place_of(rank), waited);
  failed.what_to_do = advice_for(ErrorCode::hang, {}, order_);
  failed.phase = last.phase;
  failed.log_tail = last_lines(ranks_[rank].log_tail, log_tail_bytes);
  failed.update = last.update;
  failed.micro_step = last.micro_step;
  ranks_[rank].told_to_end = true;
  ranks_[rank].process.signal_group(SIGKILL);
  while (read_rank(rank)) {  // what it had said before comes first
  }
  emit(static_cast<std::int64_t>(rank), failed);
  fail_run(ErrorCode::hang, failed.message, {});
}

bool RunSession::may_restart() const {
  if (restart_refused_ || ending_ != Ending::failure || !failure_ || !is_retryable(failure_->code)) return false;
  const auto recent = std::count_if(recent_restarts_.begin(), recent_restarts_.end(),
                                    [](Clock::time_point at) { return Clock::now() - at < restart_window; });
  if (recent >= order_.plan.spec.launch.max_restarts) return false;
  const bool fruitless = restarts_ > 0 && commits_ == 0;
  return fruitless_restarts_ + (fruitless ? 1 : 0) < max_fruitless_restarts;
}

/// Why a failed run was not started again, as an addition to its reason.
std::string RunSession::no_restart_text() const {
  if (!failure_ || !is_retryable(failure_->code) || restarts_ == 0) return {};
  if (static_cast<std::int64_t>(recent_restarts_.size()) < order_.plan.spec.launch.max_restarts)
    return fmt::format(". No progress: {} restarts without a new checkpoint", fruitless_restarts_ + 1);
  return recent_restarts_.size() == 1
             ? ". Its one restart in ten minutes is used up"
             : fmt::format(". Its {} restarts in ten minutes are used up", recent_restarts_.size());
}

void RunSession::restart() {
  fruitless_restarts_ = commits_ > 0 ? 0 : fruitless_restarts_ + (restarts_ > 0 ? 1 : 0);
  ++restarts_;
  std::erase_if(recent_restarts_, [](Clock::time_point at) { return Clock::now() - at >= restart_window; });
  recent_restarts_.push_back(Clock::now());
  const CheckpointMark checkpoint = newest_checkpoint(order_.run_dir);
  const std::string from = checkpoint.valid() ? "update " + std::to_string(checkpoint.update) : "the start";
  set_state(RunState::restarting, fmt::format("{}. Restarting from {} (attempt {} of {})", failure_->message, from,
                                              recent_restarts_.size(), order_.plan.spec.launch.max_restarts));
  order_.resume_from = "newest";  // whether there is one the ranks see for themselves
  resumed_ = true;
  start_attempt();
}

}  // namespace accrue
