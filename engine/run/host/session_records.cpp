// SPDX-License-Identifier: Apache-2.0
// Recording and publishing of a session: first in the run folder, then in the queue, so that no one sees an event that
// a crash could undo.
#include <fmt/format.h>

#include "accrue/run/base/monotonic_clock.h"
#include "accrue/run/window/checkpoint_mark.h"
#include "run_folder.h"
#include "run_session.h"

namespace accrue {

std::int64_t RunSession::now_ns() const {
  return monotonic_ns() - order_.origin_ns;
}

void RunSession::emit(std::int64_t rank, EventBody body) {
  RunEvent event{rank, -1, now_ns(), std::move(body)};
  if (writer_) {
    const auto next = writer_->next_seq().find(rank);
    event.seq = next == writer_->next_seq().end() ? 0 : next->second;
  }
  store_and_publish(std::move(event));
}

void RunSession::store_and_publish(RunEvent event, std::string_view line) {
  tally_.take(event);
  if (writer_ && is_stored(event.body)) {
    const bool had_reserve = !writer_->reserve_spent();
    const auto stored = writer_->append(event, line);
    if (!stored)
      disk_trouble(stored.error());
    else if (had_reserve && writer_->reserve_spent())
      disk_trouble({ErrorCode::disk, "the disk is full; the reserve kept for the end of the run is in use",
                    order_.run_dir.string(), "Free some space and resume the run"});
  }
  publish_({&event, 1});
}

void RunSession::set_state(RunState state, std::string detail) {
  if (state == state_ && detail == detail_) return;
  state_ = state;
  detail_ = detail;
  const auto update = last_update_ ? last_update_->update : 0;
  const auto micro_step = agreement_.stage() == HoldAgreement::Stage::held ? agreement_.micro_step()
                          : last_update_                                   ? last_update_->micro_step
                                                                           : 0;
  if (!is_over(state)) publish_state_(state);
  emit(supervisor_rank,
       StateChanged{std::string(to_string(state)), std::move(detail), micro_step, update, agreement_.phase()});
  if (!writer_) return;
  if (const auto synced = writer_->sync(); !synced) disk_trouble(synced.error());
}

void RunSession::warn(std::string class_name, std::string message, std::string what_to_do) {
  emit(supervisor_rank, Warning{std::move(class_name), std::move(message), std::move(what_to_do),
                                last_update_ ? last_update_->update : 0});
}

/// Warns once, saves what can be saved and ends the run. While the run's end is being recorded the error is kept, and
/// finish_run() reports it.
void RunSession::disk_trouble(const Error& error) {
  if (!folder_.disk_failed(error)) return;
  if (ladder_.ending() == Ending::none && !all_joined())
    return fail_run(ErrorCode::disk, error.text(), "Resume the run once its folder can be written again");
  warn("disk", error.text(), "The run is being saved and ended; resume it once its folder can be written again");
  failures_.note(ErrorCode::disk, error.text());
  if (ladder_.ending() == Ending::none) save_and_end("The record cannot be kept: saving and ending");
}

/// Takes a checkpoint at the next boundary, then ends the run with the known failure.
void RunSession::save_and_end(std::string why) {
  ladder_.save(Ending::disk, Clock::now());
  broadcast({RankCommandKind::checkpoint_and_stop, 0});
  apply(agreement_.release());
  set_state(RunState::stopping, std::move(why));
}

/// Without its folder a run cannot write; without its lock another supervisor may start.
void RunSession::folder_trouble(const FolderWatch::Loss& loss) {
  warn("disk", loss.error.text(), {});
  failures_.note(ErrorCode::disk, loss.error.text());
  if (!loss.folder_remains) return fail_run(ErrorCode::disk, loss.error.text(), {});
  if (ladder_.ending() == Ending::none) save_and_end("Something in the run folder was removed: saving and ending");
}

RunSummary RunSession::summary(const std::string& outcome, const std::string& reason) const {
  RunSummary summary;
  summary.dir = order_.run_dir;
  summary.run_id = order_.run_id;
  summary.name = order_.plan.spec.run.name;
  summary.state = outcome;
  summary.planned_updates = order_.plan.totals.updates;
  if (last_update_) {
    summary.updates = last_update_->update;
    summary.loss = tally_.loss();
    summary.empty_windows = last_update_->empty_windows;
    summary.overflowed_windows = last_update_->overflowed_windows;
    summary.samples = last_update_->samples;
    summary.tokens = last_update_->tokens;
    summary.seconds = last_update_->seconds;
    summary.paused_seconds = tally_.paused_seconds();
  }
  summary.exactness = tally_.worst_check();
  if (reported_end_) summary.weights_sha256 = reported_end_->weights_sha256;
  summary.spec_sha256 = spec_sha256_;
  name_checkpoints(summary, order_.plan.spec);
  summary.started_at = started_at_;
  summary.branched_from = order_.branched_from;
  summary.message = reason;
  summary.plan_check = check_plan(order_.plan, measured_);
  return summary;
}

}  // namespace accrue
