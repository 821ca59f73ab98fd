// SPDX-License-Identifier: Apache-2.0
// How ranks end. Once one is lost no other continues, because nothing in the survivors' memory can be trusted: the run
// restarts from its last checkpoint or ends. A lost rank makes its peers fail, too. Exits that this would explain are
// held back for a moment, and dropped if the rank that caused them is found.
#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <optional>

#include "accrue/run/counted.h"
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

/// The class of a failure that is known by its exit status alone.
ErrorCode code_of_exit(const ExitReport& exit) {
  if (exit.signal != 0 || exit.lost) return ErrorCode::peer_lost;
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
  return exit.signal == 0 && !exit.lost &&
         (code == ErrorCode::peer_lost || code == ErrorCode::hang || code == ErrorCode::rendezvous);
}

bool is_retryable(ErrorCode code) {
  return code == ErrorCode::peer_lost || code == ErrorCode::hang;
}

std::string cause_text(const std::string& rank, const ExitReport& exit) {
  if (exit.lost) return fmt::format("{} was lost: its connection ended", rank);
  if (exit.signal == 0) return fmt::format("{} ended with exit status {}", rank, exit.status);
  if (exit.signal == SIGKILL) return fmt::format("{} was killed (signal 9)", rank);
  return fmt::format("{} died of signal {} ({})", rank, exit.signal, ::strsignal(exit.signal));
}

/// ", last seen in backward of micro-step 7, chunk 0", or the phase with what is known of it; of the last heartbeat. No
/// operation of a micro-step whose update is known to have ended is named: the rank has gone on since.
std::string doing_text(const Heartbeat& last, const std::optional<Update>& done) {
  const bool of_micro_step = last.operation.find("micro-step") != std::string::npos;
  const bool ended = done && last.update <= done->update && last.micro_step <= done->micro_step;
  if (of_micro_step && !ended) return ", last seen in " + last.operation;
  if (last.phase.empty()) return {};
  const std::string phase = fmt::format(", last seen in phase \"{}\"", last.phase);
  return last.operation.empty() || of_micro_step ? phase : phase + fmt::format(" ({})", last.operation);
}

}  // namespace

/// "Rank 3", where the ranks share a model with its place: "Rank 3 (data 0, stage 1, tensor 1)".
std::string RunSession::name_of(std::size_t rank) const {
  const RankGrid& grid = order_.plan.grid;
  if (grid.pipeline * grid.tensor == 1) return fmt::format("Rank {}", rank);
  const GridCoordinate at = grid.coordinate(static_cast<std::int64_t>(rank));
  return fmt::format("Rank {} (data {}, stage {}, tensor {})", rank, at.data, at.pipeline, at.tensor);
}

/// Empty where the rank has printed nothing.
std::string RunSession::log_advice(std::size_t rank) const {
  return ranks_[rank].log_tail.empty() ? "" : fmt::format("See the end of ranks/{}.log", rank);
}

/// What to do about a failure, where the rank itself did not say. How the run goes on is said by its next state.
std::string RunSession::advice_for(std::size_t rank, const ExitReport& exit) const {
  if (exit.lost) return "See what its launcher says of it; started again, the same command goes on";
  if (exit.signal == SIGKILL)
    return "Unless a user killed it, the system probably ran out of memory: use fewer ranks or a smaller micro-batch";
  return log_advice(rank);
}

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
  const RankGrid& grid = order_.plan.grid;
  if (failed.message.empty())
    failed.message = cause_text(name_of(rank), exit) + doing_text(last, last_update_);
  else if (grid.pipeline * grid.tensor > 1 && code_of_name(failed.class_name) != ErrorCode::numerics)  // of all ranks
    failed.message = name_of(rank) + doing_text(last, last_update_) + ": " + failed.message;
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
  if (!failure_ || ending_ == Ending::none) failure_ = Failure{code, message};
  if (ending_ == Ending::failure || ending_ == Ending::killed_by_user) return;
  if (ending_ == Ending::none) ending_ = Ending::failure;
  kill_ranks();  // nothing in the survivors' memory is trusted
  if (all_gone()) return;
  set_state(may_restart() ? RunState::restarting : RunState::stopping, std::move(message));
}

/// No cause was found in time: the exits that were held back are the failure.
void RunSession::settle_failures() {
  failures_settle_ = {};
  for (const auto& [rank, exit] : std::exchange(consequences_, {})) {
    const RunEvent event = failure_event(rank, exit);
    ranks_[rank].failure_report.reset();
    const bool explained = ending_ == Ending::failure && failure_;
    if (explained || ending_ == Ending::by_user || ending_ == Ending::killed_by_user) continue;
    if (const auto awaited = progress_.awaited(Clock::now())) {
      fail_motionless(*awaited, fmt::format("rank {} gave up waiting for it", rank));
      continue;
    }
    const auto failed = std::get<RankFailed>(event.body);
    emit(event.rank, event.body);
    fail_run(code_of_name(failed.class_name), failed.message, {});
  }
}

/// A rank that has not ended has failed all the same: another one gave up waiting for it, or it is stopped.
void RunSession::fail_motionless(std::size_t rank, const std::string& why) {
  const auto& last = progress_.last(rank);
  const auto seconds = std::chrono::duration<double>(Clock::now() - progress_.last_progress(rank)).count();
  RankFailed failed;
  failed.class_name = to_string(ErrorCode::hang);
  failed.message = fmt::format("{} made no progress for {:.0f} s{}; {}", name_of(rank), seconds, place_of(rank), why);
  failed.what_to_do = advice_for(rank, {});
  failed.phase = last.phase;
  failed.log_tail = last_lines(ranks_[rank].log_tail, log_tail_bytes);
  failed.update = last.update;
  failed.micro_step = last.micro_step;
  end_rank(ranks_[rank]);
  while (read_rank(rank)) {  // what it had said before comes first
  }
  emit(static_cast<std::int64_t>(rank), failed);
  fail_run(ErrorCode::hang, failed.message, {});
}

std::int64_t RunSession::recent_restarts() const {
  return std::count_if(recent_restarts_.begin(), recent_restarts_.end(),
                       [](Clock::time_point at) { return Clock::now() - at < restart_window; });
}

bool RunSession::may_restart() const {
  if (!starts_ranks_) return false;  // their launcher may
  if (restart_refused_ || ending_ != Ending::failure || !failure_ || !is_retryable(failure_->code)) return false;
  if (recent_restarts() >= order_.plan.spec.launch.max_restarts) return false;
  const bool fruitless = restarts_ > 0 && commits_ == 0;
  return fruitless_restarts_ + (fruitless ? 1 : 0) < max_fruitless_restarts;
}

/// Why a failed run was not started again, as an addition to its reason.
std::string RunSession::no_restart_text() const {
  if (!failure_ || !is_retryable(failure_->code) || restarts_ == 0) return {};
  const std::int64_t recent = recent_restarts();
  if (recent < order_.plan.spec.launch.max_restarts)
    return fmt::format(". Not restarted again: {} brought no new checkpoint",
                       counted(fruitless_restarts_ + 1, "restart"));
  return fmt::format(". Not restarted again: {} in ten minutes, as launch.max_restarts allows",
                     counted(recent, "restart"));
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
  order_.paused = false;
  order_.resume_from = "newest";  // the ranks find out whether there is one
  resumed_ = true;
  start_attempt();
}

}  // namespace accrue
