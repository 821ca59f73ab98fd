// SPDX-License-Identifier: Apache-2.0
// A run must end with a known outcome and leave no process behind, even if any part of it dies or hangs. One loop on
// one thread owns every descriptor and every process of the run, and reacts to readable descriptors and clocks. Ranks
// are asked to end first and killed when their time is up. Only SIGKILL ends a rank, because a log-out sends the other
// signals too. Cost: a poll every 100 ms while nothing happens.
#include "run_session.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <utility>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/version.h"
#include "accrue/run/facts/host_facts.h"
#include "accrue/run/record/leftovers.h"
#include "accrue/run/weights/start_weights.h"
#include "run_folder.h"

namespace accrue {
namespace {

using namespace std::chrono_literals;

/// A resumed run must use the data of its first part. Files that are still in their recorded state are not read again.
/// The ranks compare with the current marks.
Result<void> check_data(RunOrder& order) {
  if (order.plan.data.fingerprint.empty()) return {};
  const auto facts = scan_data(order.plan.spec, order.plan.base_dir, order.plan.data);
  if (!facts) return tl::unexpected(facts.error());
  DataFacts& recorded = order.plan.data;
  if (facts->fingerprint == recorded.fingerprint) {
    if (facts->samples == recorded.samples && facts->validation_samples == recorded.validation_samples &&
        facts->tokens_per_sample == recorded.tokens_per_sample && facts->sample_tokens == recorded.sample_tokens) {
      recorded.files = facts->files;
      return {};
    }
    return fail(ErrorCode::protocol, "the plan is damaged: it counts other samples than the training data hold",
                (order.run_dir / "plan.json").string(), "Start the run again from its spec");
  }
  return fail(ErrorCode::data, "the training data changed since the run began",
              data_path(order.plan.spec.data, order.plan.base_dir).string(),
              "Put the file back as it was, or start a new run");
}

/// A run without a checkpoint begins again from its weights, which must be those of its first part.
Result<void> check_weights(const RunOrder& order) {
  if (order.plan.weights_fingerprint.empty() || newest_checkpoint(order.run_dir).valid()) return {};
  const ModelSpec& model = order.plan.spec.model;
  const auto weights = StartWeights::open(model.weights);
  if (!weights) return tl::unexpected(weights.error());
  const auto now = weights->fingerprint();
  if (!now) return tl::unexpected(now.error());
  return check_same_weights(model, order.plan.weights_fingerprint, *now);
}

Result<void> check_inputs(RunOrder& order) {
  auto same = check_data(order);
  return same ? check_weights(order) : same;
}

}  // namespace

std::string utc_now() {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  const std::time_t time = std::chrono::system_clock::to_time_t(second);
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  return fmt::format("{}.{:03}Z", text, (now - second).count());
}

std::string versions_json() {
  return fmt::format(R"({{"accrue":"{}","events":{}}})", version(), event_format_version);
}

SessionRequest new_session(RunOrder order, RunWriter writer, std::string spec_sha256) {
  return {std::move(order), std::move(writer), std::move(spec_sha256), false, {}, {}, {}, {}, {}};
}

SessionRequest continued_session(RunOrder order, RunWriter writer, std::string spec_sha256) {
  const auto before = read_run(order.run_dir);
  SessionRequest session = new_session(std::move(order), std::move(writer), std::move(spec_sha256));
  session.resumed = true;
  if (!before) return session;
  session.started_at = before->started_at;
  session.tally = RunTally(before->paused_seconds, before->exactness, before->loss);
  if (before->updates == 0) return session;
  Update& last = session.last_update.emplace();
  last.update = before->updates;
  last.empty_windows = before->empty_windows;
  last.overflowed_windows = before->overflowed_windows;
  last.samples = before->samples;
  last.tokens = before->tokens;
  last.seconds = before->seconds;
  return session;
}

RunSession::RunSession(SessionRequest request, SessionSettings settings, Publish publish, SetState set_state)
    : order_(std::move(request.order)),
      writer_(std::move(request.writer)),
      spec_sha256_(std::move(request.spec_sha256)),
      resumed_(request.resumed),
      settings_(std::move(settings)),
      publish_(std::move(publish)),
      publish_state_(std::move(set_state)),
      channels_(std::move(request.channels)),
      own_loop_(request.own_loop),
      ladder_(settings_.stop_grace),
      last_update_(std::move(request.last_update)),
      tally_(std::move(request.tally)),
      started_at_(std::move(request.started_at)) {}

RunSession::~RunSession() = default;

void RunSession::begin() {
  folder_ = FolderWatch(order_.run_dir);
  if (auto control = ControlServer::open(order_.run_id))
    control_ = std::move(*control);
  else
    warn("device", control.error().text(), "The run cannot be attached to; it trains all the same");
  start_attempt();
}

void RunSession::start_attempt() {
  const auto now = Clock::now();
  const auto world = static_cast<std::size_t>(order_.plan.grid.world());
  ranks_.clear();
  ranks_.resize(world);
  agreement_ = HoldAgreement(world, [this](std::int64_t micro_step) { return stop_after(micro_step); });
  progress_ = ProgressWatch(world, now);
  ladder_.begin_attempt();
  failures_.begin_attempt();
  reported_end_.reset();
  blamed_.clear();
  updates_came_ = false;
  last_turn_ = now;
  join_ends_ = now + seconds_of(order_.plan.spec.launch.join_timeout_s);
  order_.first_seq.assign(world, 0);
  for (std::size_t rank = 0; rank < world; ++rank) {
    const auto next = writer_->next_seq().find(static_cast<std::int64_t>(rank));
    if (next != writer_->next_seq().end()) order_.first_seq[rank] = next->second;
    ranks_[rank].reader.expect(static_cast<std::int64_t>(rank), order_.first_seq[rank]);
  }
  if (state_ != RunState::restarting)
    set_state(RunState::starting, "Starting " + counted(order_.plan.grid.world(), "rank"));
  announce_start(resumed_);
  Result<void> started = resumed_ ? check_inputs(order_) : Result<void>();
  if (started) started = check_unchanged(order_.plugins);
  if (started) started = leave_later_branch();
  // The maker of a run's folder writes its plan, so that a failing start leaves nothing behind. Each later start
  // changes the order.
  if (started && !own_loop_ && (failures_.restarts() > 0 || !writer_->wrote_plan()))
    started = writer_->write_plan(to_json(order_));
  if (!launches_ranks()) adopt_all();
  if (started && launches_ranks() && ladder_.ending() == Ending::none) started = spawn_all();
  if (!started) fail_run(started.error().code, started.error().text(), {});
}

void RunSession::announce_start(bool resumed) {
  RunStarted started;
  started.run = order_.run_id;
  started.spec_sha256 = spec_sha256_;
  started.plan_json = own_loop_ ? "{}" : plan_summary_json(order_.plan);
  const HostFacts host = local_facts();
  started.versions_json = versions_json();
  started.host_json = to_json(host);
  started.started_at = utc_now();
  if (started_at_.empty()) started_at_ = started.started_at;
  started.resumed = resumed;
  started.branched_from = order_.branched_from;
  if (const auto newest = newest_checkpoint(order_.run_dir); resumed && newest.valid()) {
    const CheckpointMark named = checkpoint_mark(order_.resume_from);
    started.resumed_update = (named.valid() ? named : newest).update;
    started.resumed_position = (named.valid() ? named : newest).position;
  }
  if (own_loop_) started.resumed_update = *own_loop_;
  emit(supervisor_rank, std::move(started));
}

/// Returning to an earlier checkpoint abandons the later ones.
Result<void> RunSession::leave_later_branch() {
  const CheckpointMark mark = checkpoint_mark(order_.resume_from);
  if (!resumed_ || !mark.valid()) return {};
  if (RunPlan& plan = order_.plan; !plan.window.steps_set.empty()) {
    plan.window.forget_steps_after(mark.update);
    plan.totals = total_windows(plan.window);
  }
  const auto abandoned = set_aside_after(order_.run_dir, mark, "abandoned");
  if (!abandoned) return tl::unexpected(abandoned.error());
  if (!abandoned->empty())
    warn("checkpoint",
         fmt::format("The run goes back to update {}: {} set aside", mark.update,
                     counted(static_cast<std::int64_t>(abandoned->size()), "later checkpoint")),
         "Kept in checkpoints/ as abandoned-step-N; remove what is not wanted");
  return {};
}

void RunSession::adopt_all() {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    ranks_[rank].process = RankProcess{{}, std::move(channels_.at(rank)), {}};
    ranks_[rank].adopted = true;
  }
}

Result<void> RunSession::spawn_all() {
  const auto store = make_store_memory();
  if (!store) return tl::unexpected(store.error());
  RankLaunch launch;
  launch.program = settings_.rank_program;
  launch.plan_file = order_.run_dir / "plan.json";
  launch.world = static_cast<std::int64_t>(ranks_.size());
  launch.threads = order_.plan.threads_per_rank;
  launch.lock_fd = writer_->lock_fd();
  launch.store_fd = store->get();
  launch.patience =
      std::chrono::duration_cast<std::chrono::milliseconds>(seconds_of(order_.plan.spec.launch.join_timeout_s));
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    launch.rank = static_cast<std::int64_t>(rank);
    auto process = spawn_rank(launch);
    if (!process) return tl::unexpected(process.error());
    ranks_[rank].process = std::move(*process);
  }
  return {};
}

void RunSession::add_poll(std::vector<pollfd>& fds) const {
  for (const auto& slot : ranks_) {
    const short wanted = slot.outbox.empty() ? POLLIN : POLLIN | POLLOUT;
    if (slot.process.events.get() >= 0) fds.push_back({slot.process.events.get(), wanted, 0});
    if (slot.process.output.get() >= 0) fds.push_back({slot.process.output.get(), POLLIN, 0});
    if (slot.process.child.pidfd() >= 0) fds.push_back({slot.process.child.pidfd(), POLLIN, 0});
  }
  if (control_) control_->add_poll(fds);
}

void RunSession::turn() {
  if (over()) return;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!ranks_[rank].outbox.empty()) ranks_[rank].flush();
    read_rank(rank);
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].gone()) continue;
    if (const auto exit = ranks_[rank].reap()) note_exit(rank, *exit);
  }
  if (control_) control_->serve([this](const HostCommand& asked) { return answer_control(asked); });
  const auto now = Clock::now();
  check_clocks(now);
  if (all_gone()) finish_attempt();
}

void RunSession::finish_attempt() {
  settle_failures();
  if (const auto loss = folder_.look_once()) folder_trouble(*loss);
  if (may_restart()) return restart();
  const auto most = order_.plan.spec.launch.max_restarts;
  finish_run(outcome_of({.ending = ladder_.ending(),
                         .failure = failures_.failure(),
                         .no_restart = ladder_.restart_allowed() ? failures_.no_restart_text(most, Clock::now()) : "",
                         .reported = reported_end_,
                         .folder_lost = folder_.lost(),
                         .launched_here = launches_ranks()}));
}

void RunSession::restart() {
  const auto now = Clock::now();
  failures_.restarted(now);
  const CheckpointMark checkpoint = newest_checkpoint(order_.run_dir);
  const std::string from = checkpoint.valid() ? "update " + std::to_string(checkpoint.update) : "the start";
  set_state(RunState::restarting,
            fmt::format("{}. Restarting from {} (attempt {} of {})", failures_.failure()->message, from,
                        failures_.recent_restarts(now), order_.plan.spec.launch.max_restarts));
  order_.paused = false;
  order_.resume_from = "newest";  // the ranks check whether there is one
  resumed_ = true;
  start_attempt();
}

void RunSession::finish_run(const RunOutcome& outcome) {
  if (requested_steps_ > 0)
    warn("plan", fmt::format("N = {} was requested, but the run ended before its next boundary", requested_steps_), {});
  RunFinished end;
  if (reported_end_) end = *reported_end_;
  if (!reported_end_ && last_update_) {
    end.updates = last_update_->update;
    end.loss = tally_.loss();
  }
  end.outcome = outcome.outcome;
  end.exit_status = outcome.exit_status;
  if (outcome.outcome != "finished") end.reason = outcome.reason;
  end.seconds = static_cast<double>(now_ns()) / 1e9;

  // The end is shown once the folder is closed and unlocked, because a viewer may resume at once; it is shown with its
  // outcome, which decides whether that is possible.
  std::vector<RunEvent> shown;
  const Publish publish = std::exchange(
      publish_, [&shown](std::span<RunEvent> events) { std::ranges::move(events, std::back_inserter(shown)); });
  RunState final_state = end.outcome == "failed" ? RunState::failed : RunState::finished;
  folder_.begin_end();
  const bool resumable = !own_loop_ && (!failures_.failure() || !stays_broken(failures_.failure()->code));
  set_state(final_state,
            ended_text(end, last_update_.value_or(Update()), resumable, newest_checkpoint(order_.run_dir)));
  emit(supervisor_rank, end);
  if (const auto synced = writer_->sync(); !synced) disk_trouble(synced.error());
  if (folder_.end_error()) {
    final_state = RunState::failed;
    tell_of_lost_end(shown, *folder_.end_error());
  } else if (const auto written = writer_->write_summary(summary(end.outcome, end.reason)); !written) {
    tell_of_missing_summary(shown, written.error());
  }
  clear_leftovers(order_.run_dir);  // of ranks that were killed while writing
  writer_.reset();
  control_.reset();
  ranks_.clear();
  end_ = std::move(end);
  publish_ = publish;
  publish_state_(final_state);
  publish_(shown);
}

void RunSession::kill_ranks() {
  ladder_.killed(Clock::now());
  for (auto& slot : ranks_) {
    if (slot.gone()) continue;
    end_rank(slot);
  }
}

/// Only its user ends a program with its own loop: otherwise the record closes the channel, which asks the ranks to
/// save and end.
void RunSession::end_rank(RankSlot& slot) {
  if (!lets_ranks_go()) return slot.kill();
  slot.told_to_end = true;
  slot.process.events.reset();
}

ControlAnswer RunSession::answer_control(const HostCommand& asked) {
  const auto done = command(asked);
  return {done.has_value(), std::string(to_string(state_)), done ? std::string() : done.error().message};
}

bool RunSession::all_gone() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const RankSlot& slot) { return slot.gone(); });
}

std::size_t RunSession::ready_count() const {
  return static_cast<std::size_t>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const RankSlot& slot) { return slot.ready; }));
}

}  // namespace accrue
