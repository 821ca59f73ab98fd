// SPDX-License-Identifier: Apache-2.0
// Input from the ranks: always read, so that a full pipe never blocks one, then sorted into control traffic
// (heartbeats, holdings) and stored events.
#include <fmt/format.h>

#include <utility>

#include "accrue/run/base/counted.h"
#include "accrue/run/events/steps_record.h"
#include "run_session.h"

namespace accrue {

bool RunSession::read_rank(std::size_t rank) {
  RankSlot& slot = ranks_[rank];
  const std::string output = slot.read_output();
  if (!output.empty() && writer_)
    if (const auto logged = writer_->append_log(static_cast<std::int64_t>(rank), output); !logged)
      warn("disk", logged.error().text(), "The run goes on; part of what the rank prints is lost");
  const std::string bytes = slot.read_events();
  if (bytes.empty()) return !output.empty();
  for (auto& [event, line] : slot.reader.feed_lines(bytes)) take_event(rank, std::move(event), line);
  check_readability(rank);
  return true;
}

void RunSession::take_event(std::size_t rank, RunEvent event, std::string_view line) {
  const auto now = Clock::now();
  if (event.rank != static_cast<std::int64_t>(rank))
    line = {};  // a rank reports only about itself: the event is encoded again with its number
  event.rank = static_cast<std::int64_t>(rank);
  if (const auto* heartbeat = std::get_if<Heartbeat>(&event.body)) {
    ranks_[rank].said_farewell |= heartbeat->phase == farewell_phase;
    progress_.heard(rank, *heartbeat, now);
    publish_({&event, 1});
    return;
  }
  if (const auto* holding = std::get_if<Holding>(&event.body)) {
    progress_.worked(rank, now);
    apply(agreement_.answer(rank, *holding));
    return;
  }
  if (!std::holds_alternative<Gauge>(event.body)) progress_.worked(rank, now);
  if (std::holds_alternative<RankFailed>(event.body)) return take_failure_report(rank, std::move(event));
  if (const auto* finished = std::get_if<RunFinished>(&event.body)) {
    if (rank == 0) reported_end_ = *finished;  // the supervisor reports the end itself
    return;
  }
  check_numbering(rank, event);
  const bool is_ready = std::holds_alternative<RankReady>(event.body);
  const bool is_commit = std::holds_alternative<CheckpointDone>(event.body);
  if (const auto* update = std::get_if<Update>(&event.body); update != nullptr && rank == 0) {
    check_updates(*update);
    note_joining();
    last_update_ = *update;
    last_update_->weights.clear();
  }
  if (const auto* measured = std::get_if<Measured>(&event.body); measured != nullptr && measured->updates > 0)
    measured_[event.rank] = *measured;
  if (const auto* warning = std::get_if<Warning>(&event.body); warning != nullptr && warning->class_name == "numerics")
    last_numerics_ = warning->message;
  const auto steps_event =
      std::holds_alternative<StepsChanged>(event.body) ? std::optional(event) : std::optional<RunEvent>();
  store_and_publish(std::move(event), line);
  if (steps_event) note_steps(*steps_event);
  if (is_ready) note_ready(rank);
  if (is_commit) {
    failures_.checkpoint_committed();
    if (writer_)
      if (const auto synced = writer_->sync(); !synced) disk_trouble(synced.error());
  }
}

/// Held back until the exit status is known, so that one event has both.
void RunSession::take_failure_report(std::size_t rank, RunEvent event) {
  RankSlot& slot = ranks_[rank];
  if (slot.failure_report) {
    check_numbering(rank, *slot.failure_report);
    store_and_publish(std::move(*slot.failure_report));
  }
  slot.failure_report = std::move(event);
}

void RunSession::note_ready(std::size_t rank) {
  ranks_[rank].ready = true;
  note_joining();
}

void RunSession::note_joining() {
  if (state_ != RunState::starting && state_ != RunState::restarting) return;
  if (!all_joined()) return set_state(state_, fmt::format("{} of {} ranks joined", ready_count(), ranks_.size()));
  progress_.restart(Clock::now());
  set_state(RunState::running, "Running");
  // These ranks did not receive the commands to the ranks of the failed attempt.
  if (requested_steps_ > 0) broadcast({.kind = RankCommandKind::set_steps, .steps = requested_steps_});
}

/// Every walk through the plan, here and after a restart, takes the new N from that update on.
void RunSession::note_steps(const RunEvent& event) {
  RunPlan& plan = order_.plan;
  if (!take_steps(plan.window, event)) return;
  const auto& changed = std::get<StepsChanged>(event.body);
  if (!changed.repeated && changed.steps == requested_steps_) requested_steps_ = 0;
  plan.totals = total_windows(plan.window);
  if (!writer_) return;
  if (const auto written = writer_->write_plan(to_json(order_)); !written) disk_trouble(written.error());
}

/// Ranks whose supervisor died train to the next boundary and save. Those updates are not recorded.
void RunSession::check_updates(const Update& next) {
  const std::int64_t told = last_update_ ? last_update_->update : 0;
  const bool is_first = !std::exchange(updates_came_, true);  // a later gap means lines that the rank dropped
  if (!resumed_ || !is_first || next.update <= told + 1) return;
  const std::string which = next.update == told + 2 ? fmt::format("update {} has", told + 1)
                                                    : fmt::format("updates {} to {} have", told + 1, next.update - 1);
  warn("events", which + " no events, being trained after the supervisor had ended",
       "The weights include them; only the curves have a gap");
}

void RunSession::check_numbering(std::size_t rank, const RunEvent& event) {
  if (!writer_ || event.seq < 0 || folder_.disk_has_failed()) return;  // a full disk loses lines, and was reported
  const auto entry = writer_->next_seq().find(event.rank);
  const auto expected = entry == writer_->next_seq().end() ? 0 : entry->second;
  if (event.seq > expected)
    warn("events",
         fmt::format("Rank {} skipped {} (number {} to {})", rank, counted(event.seq - expected, "event"), expected,
                     event.seq - 1),
         "The curves have a gap there; please report it");
}

void RunSession::check_readability(std::size_t rank) {
  RankSlot& slot = ranks_[rank];
  const auto& problems = slot.reader.problems();
  if (problems.unreadable_lines == slot.unreadable_lines) return;
  const bool is_first = slot.unreadable_lines == 0;
  slot.unreadable_lines = problems.unreadable_lines;
  if (!is_first) return;
  const std::string message = fmt::format("Rank {} sent a line that cannot be read: {}", rank, problems.first_message);
  const bool other_version = problems.first_message.find("of version") != std::string::npos;
  if (slot.ready && !other_version)
    warn("protocol", message, "Lines like this one are left out");
  else
    fail_run(ErrorCode::protocol, message, "Install accrue-rank and this program from the same build");
}

}  // namespace accrue
