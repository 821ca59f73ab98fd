// SPDX-License-Identifier: Apache-2.0
// Timed actions of a session: ranks that do not join, do not move, write for long or do not end.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rank_text.h"
#include "run_session.h"

namespace accrue {
namespace {

using namespace std::chrono_literals;

constexpr int stalls_of_a_last_save = 30;  ///< stall time-outs: a quarter of an hour by default
constexpr auto after_the_peers = 2s;  ///< delay, after their time-outs, until the supervisor gives up a stopped rank
constexpr auto frozen = 1s;  ///< a turn this late means that this process was stopped, or waited for its own disk

}  // namespace

void RunSession::check_clocks(Clock::time_point now) {
  if (now - last_turn_ > frozen) forgive_gap(now - last_turn_);
  last_turn_ = now;
  if (writer_)
    if (const auto synced = writer_->sync_if_due(now); !synced) disk_trouble(synced.error());
  if (failures_.settling_is_due(now)) settle_failures();
  if (const auto loss = folder_.look_if_due(now)) folder_trouble(*loss);
  check_join(now);
  check_progress(now);
  check_writing(now);
  check_waiting(now);
  check_last_save(now);
  check_ladder(now);
}

/// This process was suspended and received nothing: no rank is blamed for that time.
void RunSession::forgive_gap(Clock::duration gap) {
  progress_.leave_out(gap, Clock::now());
  ladder_.leave_out(gap);
  failures_.leave_out(gap);
  join_ends_ += gap;
}

void RunSession::check_join(Clock::time_point now) {
  if (ladder_.ending() != Ending::none || all_joined() || now < join_ends_) return;
  std::vector<std::size_t> missing;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (!ranks_[rank].ready) missing.push_back(rank);
  const auto logged = std::ranges::find_if(missing, [this](std::size_t rank) { return !log_advice(rank).empty(); });
  fail_run(ErrorCode::rendezvous,
           fmt::format("{} of {} ranks joined within {} s; {} did not", ready_count(), ranks_.size(),
                       order_.plan.spec.launch.join_timeout_s, list_ranks(missing, 'r')),
           (logged == missing.end() ? "" : log_advice(*logged) + ". ") +
               "If the machine is slow, raise launch.join_timeout_s");
}

void RunSession::check_progress(Clock::time_point now) {
  // A stop drops the open window anyway, so it need not wait long for a stuck micro-step.
  const bool stops = ladder_.ending() == Ending::stop;
  const auto limit = stops ? ladder_.grace() : seconds_of(order_.plan.spec.launch.stall_timeout_s);
  const bool watched = state_ == RunState::running || state_ == RunState::degraded || state_ == RunState::stopping;
  if (!watched) return;
  // A stopped process is blamed here only after its peers would have timed out: a peer with a limit reports first, and
  // names what it waited for. A peer without a limit, for example waiting for another rank's disk, never would.
  const auto given_up = seconds_of(order_.plan.spec.launch.collective_timeout_s) + after_the_peers;
  if (const auto rank = progress_.stopped(now, given_up); rank && state_ != RunState::stopping)
    return fail_motionless(*rank, "its process is stopped");
  const auto blamed = progress_.stalled(now, limit);
  if (blamed.empty()) {
    if (!blamed_.empty() && state_ == RunState::degraded) set_state(RunState::running, "Running again");
    blamed_.clear();
    return;
  }
  const auto silent = progress_.silent(now, limit);
  if (!blamed_.empty() && (silent.empty() || silent == blamed_)) return;
  blamed_ = blamed;
  if (stops) return;
  const std::string message = stall_text(blamed, now);
  warn("hang", message, "Wait, look at its log, or stop the run and resume it from the last checkpoint");
  if (state_ != RunState::stopping) return set_state(RunState::degraded, message);
  // A checkpoint was requested. A stopped process will not take it; an active one may be in a long micro-step.
  if (!silent.empty()) ladder_.hurry(now);
}

/// Returns "Rank 1 made no progress for 10 s in forward, update 3, micro-step 12; rank 0 waits".
std::string RunSession::stall_text(const std::vector<std::size_t>& blamed, Clock::time_point now) const {
  const auto seconds = std::chrono::duration<double>(now - progress_.last_progress(blamed.front())).count();
  std::string text = fmt::format("{} made no progress for {:.0f} s{}",
                                 blamed.size() == 1 ? name_of(order_.plan.grid, blamed.front()) : list_ranks(blamed),
                                 seconds, place_of(progress_.last(blamed.front())));
  std::vector<std::size_t> waiting;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (std::find(blamed.begin(), blamed.end(), rank) == blamed.end() && progress_.last(rank).phase == "reduce")
      waiting.push_back(rank);
  if (waiting.empty()) return text;
  return text + fmt::format("; {} wait{}", list_ranks(waiting, 'r'), waiting.size() == 1 ? "s" : "");
}

/// A slow disk is not a hang, but a waiting user wants to know.
void RunSession::check_writing(Clock::time_point now) {
  const auto limit = seconds_of(order_.plan.spec.launch.stall_timeout_s);
  const auto writing = progress_.writing(now, limit);
  if (writing.empty()) slow_write_told_ = false;
  if (writing.empty() || std::exchange(slow_write_told_, true)) return;
  const bool final = progress_.last(writing.front()).phase == "finish";
  warn("slow",
       fmt::format("Writing the {} has taken {:.0f} s so far", final ? "final model" : "checkpoint",
                   std::chrono::duration<double>(limit).count()),
       "The disk is slow; the run waits for it");
}

/// A stop waits for pending writes, however long they take, and says so.
void RunSession::check_waiting(Clock::time_point now) {
  if (!ladder_.word_is_due(now)) return;
  const auto writing = progress_.writing(now, ladder_.grace());
  if (writing.empty()) return;
  const Heartbeat& last = progress_.last(writing.front());
  const std::string what = last.phase == "finish" ? "final model" : fmt::format("checkpoint of update {}", last.update);
  set_state(state_, fmt::format("Still writing the {}, {:.0f} s after the stop was requested", what,
                                std::chrono::duration<double>(now - ladder_.asked_at()).count()));
}

/// A slow disk is waited for, but without a user no one would end a run whose last save never returns.
void RunSession::check_last_save(Clock::time_point now) {
  const auto limit = stalls_of_a_last_save * seconds_of(order_.plan.spec.launch.stall_timeout_s);
  if (!ladder_.saves_for_disk() || progress_.motionless(now, limit).empty()) return;
  warn("disk",
       fmt::format("The last checkpoint made no progress for {:.0f} s, so the ranks are killed",
                   std::chrono::duration<double>(limit).count()),
       "Resume the run once the disk works again");
  kill_ranks();
}

/// Kills the ranks when their time is up. Ranks that have answered and are busy with a long micro-step or checkpoint
/// get more time, unless the host is closing; those without progress do not.
void RunSession::check_ladder(Clock::time_point now) {
  const bool answered =
      agreement_.stage() == HoldAgreement::Stage::settling || agreement_.stage() == HoldAgreement::Stage::held;
  if (ladder_.kill_is_due(now, answered && blamed_.empty())) kill_ranks();
}

}  // namespace accrue
