// SPDX-License-Identifier: Apache-2.0
// Whatever dies or hangs, a run must end with a known outcome and leave no process behind. One loop on one thread owns
// every descriptor and every process of the run, and reacts to readable descriptors and to clocks. Ranks are asked to
// end first and killed when their time is up. SIGKILL is the only signal that ends a rank, because a log-out sends the
// others, too. Cost: a poll every 100 ms while nothing happens.
#include "engine_host_session.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <utility>

#include "accrue/run/counted.h"
#include "accrue/run/host_facts.h"
#include "accrue/run/leftovers.h"
#include "accrue/run/version.h"
#include "run_folder.h"

namespace accrue {
namespace {

using namespace std::chrono_literals;

constexpr int stalls_of_a_last_save = 30;  ///< stall time-outs: a quarter of an hour by default
constexpr auto after_the_peers = 2s;       ///< how much later than they the supervisor gives a stopped rank up
constexpr auto frozen = 1s;  ///< a turn this late means that this process was stopped, or waited for its own disk

std::chrono::steady_clock::duration seconds_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

/// Where a run that did not finish would continue, unless that is where it ended.
std::string resume_text(const CheckpointMark& newest, std::int64_t updates) {
  if (newest.valid() && newest.update >= updates) return {};
  if (updates == 0) return {};
  if (!newest.valid()) return "; no checkpoint was taken, so resuming starts over";
  return fmt::format("; resuming begins at update {}, the newest checkpoint", newest.update);
}

/// "; 1 window was empty, 2 overflowed"; empty where all were trained on.
std::string skipped_text(const Update& last) {
  std::string text;
  if (const auto empty = last.empty_windows; empty > 0)
    text = fmt::format("; {} {} without a label", counted(empty, "window"), empty == 1 ? "was" : "were");
  if (last.overflowed_windows > 0)
    text += fmt::format("{} {} overflowed", text.empty() ? ";" : ",", counted(last.overflowed_windows, "window"));
  return text;
}

std::string finished_text(const RunFinished& end, const Update& last, const std::string& resume_text) {
  if (end.outcome == "finished" && end.updates == 0) return "Finished without an update";
  const std::string loss = last.empty_windows < end.updates ? fmt::format(", loss {:.4g}", end.loss) : "";
  if (end.outcome == "finished") return "Finished " + counted(end.updates, "update") + loss + skipped_text(last);
  if (end.outcome == "stopped")
    return fmt::format("{} after {}{}", end.reason.empty() ? "Stopped" : end.reason, counted(end.updates, "update"),
                       resume_text);
  return fmt::format("Failed: {}{}", end.reason, resume_text);
}

/// What resuming cannot mend by itself: it would meet the same again.
bool stays_broken(ErrorCode code) {
  return code == ErrorCode::config || code == ErrorCode::data || code == ErrorCode::device ||
         code == ErrorCode::protocol;
}

RunEvent disk_warning(std::string message, std::string what_to_do) {
  return {supervisor_rank, -1, 0, Warning{"disk", std::move(message), std::move(what_to_do), 0}};
}

/// The folder does not record that the run has ended: whoever waits for it is told that it failed.
void tell_of_lost_end(std::vector<RunEvent>& shown, const Error& error) {
  const std::string reason = "The end of the run could not be recorded: " + error.message;
  for (RunEvent& event : shown) {
    if (auto* changed = std::get_if<StateChanged>(&event.body)) {
      changed->state = to_string(RunState::failed);
      changed->detail = reason;
    } else if (auto* finished = std::get_if<RunFinished>(&event.body)) {
      finished->outcome = "failed";
      finished->exit_status = exit_status(ErrorCode::disk);
      finished->reason = reason;
    }
  }
  shown.insert(shown.begin(), disk_warning(error.text(), "Resume the run once its folder can be written again"));
}

void tell_of_missing_summary(std::vector<RunEvent>& shown, const Error& error) {
  for (RunEvent& event : shown)
    if (auto* finished = std::get_if<RunFinished>(&event.body); finished != nullptr && finished->exit_status == 0)
      finished->exit_status = exit_status(ErrorCode::disk);
  shown.insert(shown.begin(),
               disk_warning(error.text(), "The run itself is recorded; \"resume\" makes its summary again"));
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
      starts_ranks_(channels_.empty()),
      own_loop_(request.own_loop),
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
  agreement_ = HoldAgreement(world, [this](std::int64_t micro_step) { return next_stop(micro_step); });
  progress_ = ProgressWatch(world, now);
  ending_ = Ending::none;
  rung_ = Rung::none;
  stop_sent_ = false;
  failure_.reset();
  reported_end_.reset();
  consequences_.clear();
  failures_settle_ = {};
  blamed_.clear();
  updates_came_ = false;
  commits_ = 0;
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
  auto started = check_data();
  if (started) started = check_unchanged(order_.plugins);
  if (started) started = leave_later_branch();
  // Whoever makes a run's folder writes its plan, so that a start that cannot leaves nothing behind. Each later start
  // changes the order.
  if (started && !own_loop_ && (restarts_ > 0 || !writer_->wrote_plan()))
    started = writer_->write_plan(to_json(order_));
  if (!starts_ranks_) adopt_all();
  if (started && starts_ranks_ && ending_ == Ending::none) started = spawn_all();
  if (!started) fail_run(started.error().code, started.error().text(), {});
}

/// A resumed run must see the data that its first part saw.
Result<void> RunSession::check_data() const {
  if (!resumed_ || order_.plan.data.fingerprint.empty()) return {};
  const auto facts = scan_data(order_.plan.spec, order_.plan.base_dir);
  if (!facts) return tl::unexpected(facts.error());
  const DataFacts& recorded = order_.plan.data;
  if (facts->fingerprint == recorded.fingerprint) {
    if (facts->samples == recorded.samples && facts->validation_samples == recorded.validation_samples &&
        facts->tokens_per_sample == recorded.tokens_per_sample && facts->sample_tokens == recorded.sample_tokens)
      return {};
    return fail(ErrorCode::protocol, "the plan is damaged: it counts other samples than the training data hold",
                (order_.run_dir / "plan.json").string(), "Start the run again from its spec");
  }
  return fail(ErrorCode::data, "the training data changed since the run began",
              data_path(order_.plan.spec.data, order_.plan.base_dir).string(),
              "Put the file back as it was, or start a new run");
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

/// Going back to a certain checkpoint gives up the branch that led away from it.
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
    ranks_[rank].process = RankProcess(-1, {}, std::move(channels_.at(rank)), {});
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
    if (slot.process.events_fd() >= 0) fds.push_back({slot.process.events_fd(), wanted, 0});
    if (slot.process.output_fd() >= 0) fds.push_back({slot.process.output_fd(), POLLIN, 0});
    if (slot.process.pidfd() >= 0) fds.push_back({slot.process.pidfd(), POLLIN, 0});
  }
  if (control_) control_->add_poll(fds);
}

void RunSession::turn() {
  if (over_) return;
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

void RunSession::check_clocks(Clock::time_point now) {
  if (now - last_turn_ > frozen) forgive_gap(now - last_turn_);
  last_turn_ = now;
  if (writer_)
    if (const auto synced = writer_->sync_if_due(now); !synced) disk_trouble(synced.error());
  if (failures_settle_ != Clock::time_point{} && now >= failures_settle_) settle_failures();
  if (now >= next_folder_look_) {
    check_folder();
    next_folder_look_ = now + FolderWatch::interval;
  }
  check_join(now);
  check_progress(now);
  check_writing(now);
  check_waiting(now);
  check_last_save(now);
  check_ladder(now);
}

/// This process stood still and heard nobody: no rank is blamed for that time.
void RunSession::forgive_gap(Clock::duration gap) {
  progress_.leave_out(gap, Clock::now());
  for (auto* deadline : {&join_ends_, &rung_ends_, &failures_settle_})
    if (*deadline != Clock::time_point{} && *deadline != Clock::time_point::max()) *deadline += gap;
}

void RunSession::check_join(Clock::time_point now) {
  if (ending_ != Ending::none || ready_count() == ranks_.size() || now < join_ends_) return;
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
  // A stop drops the open window anyway, so it need not wait long for a micro-step that does not move.
  const auto limit =
      stop_sent_ ? Clock::duration(settings_.stop_grace) : seconds_of(order_.plan.spec.launch.stall_timeout_s);
  const bool watched = state_ == RunState::running || state_ == RunState::degraded || state_ == RunState::stopping;
  if (!watched) return;
  // A stopped process is blamed here only after its peers would have timed out: a peer that waits with a limit reports
  // first, and says what it waited for. One that waits without a limit, as for another rank's disk, never would.
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
  if (stop_sent_) return;
  const std::string message = stall_text(blamed, now);
  warn("hang", message, "Wait, look at its log, or stop the run and resume it from the last checkpoint");
  if (state_ != RunState::stopping) return set_state(RunState::degraded, message);
  // A checkpoint was asked for. A stopped process will not take it; one that talks may be in a long micro-step.
  if (!silent.empty()) rung_ends_ = std::min(rung_ends_, now + settings_.stop_grace);
}

/// "Rank 1 made no progress for 10 s in forward, update 3, micro-step 12; rank 0 waits".
std::string RunSession::stall_text(const std::vector<std::size_t>& blamed, Clock::time_point now) const {
  const auto seconds = std::chrono::duration<double>(now - progress_.last_progress(blamed.front())).count();
  std::string text =
      fmt::format("{} made no progress for {:.0f} s{}",
                  blamed.size() == 1 ? name_of(blamed.front()) : list_ranks(blamed), seconds, place_of(blamed.front()));
  std::vector<std::size_t> waiting;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (std::find(blamed.begin(), blamed.end(), rank) == blamed.end() && progress_.last(rank).phase == "reduce")
      waiting.push_back(rank);
  if (waiting.empty()) return text;
  return text + fmt::format("; {} wait{}", list_ranks(waiting, 'r'), waiting.size() == 1 ? "s" : "");
}

/// " in forward, update 3, micro-step 12", or " in backward of micro-step 12, chunk 1, update 3".
std::string RunSession::place_of(std::size_t rank) const {
  const auto& last = progress_.last(rank);
  if (last.operation.find("micro-step") != std::string::npos)
    return fmt::format(" in {}, update {}", last.operation, last.update);
  return fmt::format("{}{}, update {}, micro-step {}", last.phase.empty() ? "" : " in ", last.phase, last.update,
                     last.micro_step);
}

/// A slow disk is no hang, but a user who waits wants to know.
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

/// A stop waits for whatever is being written, however long that takes, and says so.
void RunSession::check_waiting(Clock::time_point now) {
  const auto every = 2 * settings_.stop_grace;  // ten seconds
  if (rung_ != Rung::asked) {
    asked_at_ = next_waiting_word_ = now;
    return;
  }
  if (now < next_waiting_word_ + every) return;
  next_waiting_word_ = now;
  const auto writing = progress_.writing(now, every / 2);
  if (writing.empty()) return;
  const Heartbeat& last = progress_.last(writing.front());
  const std::string what = last.phase == "finish" ? "final model" : fmt::format("checkpoint of update {}", last.update);
  set_state(state_, fmt::format("Still writing the {}, {:.0f} s after the stop was requested", what,
                                std::chrono::duration<double>(now - asked_at_).count()));
}

/// A slow disk is waited for, but nobody is there to end a run whose last save never returns.
void RunSession::check_last_save(Clock::time_point now) {
  const auto limit = stalls_of_a_last_save * seconds_of(order_.plan.spec.launch.stall_timeout_s);
  if (ending_ != Ending::disk_full || rung_ != Rung::asked || progress_.motionless(now, limit).empty()) return;
  warn("disk",
       fmt::format("The last checkpoint made no progress for {:.0f} s, so the ranks are killed",
                   std::chrono::duration<double>(limit).count()),
       "Resume the run once the disk works again");
  kill_ranks();
}

/// Kills the ranks when their time is up. Those that have answered and are busy with a long micro-step or checkpoint
/// get more of it, unless the host is closing; those that make no progress do not.
void RunSession::check_ladder(Clock::time_point now) {
  if (rung_ == Rung::none || now < rung_ends_) return;
  const bool answered =
      agreement_.stage() == HoldAgreement::Stage::settling || agreement_.stage() == HoldAgreement::Stage::held;
  if (rung_ == Rung::asked && answered && !strict_ladder_ && blamed_.empty()) return;
  kill_ranks();
}

void RunSession::kill_ranks() {
  rung_ = Rung::killed;
  rung_ends_ = Clock::now() + settings_.stop_grace;
  for (auto& slot : ranks_) {
    if (slot.gone()) continue;
    end_rank(slot);
  }
}

/// A program with a loop of its own is ended by its user alone: else the record lets go of it, which asks its ranks to
/// save and end.
void RunSession::end_rank(RankSlot& slot) {
  if (!lets_ranks_go()) return slot.kill();
  slot.told_to_end = true;
  slot.process.close_events();
}

void RunSession::finish_attempt() {
  settle_failures();
  check_folder();
  if (may_restart()) return restart();
  const bool completed = reported_end_ && reported_end_->outcome == "finished" && !folder_lost_;
  if (ending_ == Ending::killed_by_user) return finish_run("stopped", 130, "Killed by you");
  if (restart_refused_) return finish_run("stopped", 130, "Stopped by you");
  if (ending_ == Ending::failure && failure_)
    return finish_run("failed", exit_status(failure_->code), failure_->message + no_restart_text());
  if (completed) return finish_run("finished", 0, {});
  if (failure_) return finish_run("failed", exit_status(failure_->code), failure_->message);
  if (ending_ == Ending::by_user) return finish_run("stopped", 130, "Stopped by you");
  if (reported_end_ && reported_end_->outcome == "stopped" && !starts_ranks_)
    return finish_run("stopped", 130, "Stopped by a signal");
  if (reported_end_)
    return finish_run(reported_end_->outcome, reported_end_->outcome == "stopped" ? 130 : 3, reported_end_->reason);
  finish_run("failed", 3, "The ranks ended without saying how");
}

void RunSession::finish_run(const std::string& outcome, int status, const std::string& reason) {
  if (requested_steps_ > 0)
    warn("plan", fmt::format("N = {} was requested, but the run ended before its next boundary", requested_steps_), {});
  RunFinished end;
  if (reported_end_) end = *reported_end_;
  if (!reported_end_ && last_update_) {
    end.updates = last_update_->update;
    end.loss = tally_.loss();
  }
  end.outcome = outcome;
  end.exit_status = status;
  if (outcome != "finished") end.reason = reason;
  end.seconds = static_cast<double>(now_ns()) / 1e9;
  end_ = end;

  // The end is shown once the folder is closed and unlocked, because whoever sees it may resume at once; and with its
  // outcome, which decides whether it may be.
  std::vector<RunEvent> shown;
  const Publish publish = std::exchange(
      publish_, [&shown](std::span<RunEvent> events) { std::ranges::move(events, std::back_inserter(shown)); });
  RunState final_state = outcome == "failed" ? RunState::failed : RunState::finished;
  finishing_ = true;
  const bool resumable = !own_loop_ && (!failure_ || !stays_broken(failure_->code));
  set_state(final_state,
            finished_text(end, last_update_.value_or(Update()),
                          resumable ? resume_text(newest_checkpoint(order_.run_dir), end.updates) : std::string()));
  emit(supervisor_rank, end);
  if (const auto synced = writer_->sync(); !synced) disk_trouble(synced.error());
  if (end_trouble_) {
    final_state = RunState::failed;
    tell_of_lost_end(shown, *end_trouble_);
  } else if (const auto written = writer_->write_summary(summary(outcome, end.reason)); !written) {
    tell_of_missing_summary(shown, written.error());
  }
  clear_leftovers(order_.run_dir);  // of ranks that were killed while they wrote
  writer_.reset();
  control_.reset();
  ranks_.clear();
  over_ = true;
  publish_ = publish;
  publish_state_(final_state);
  publish_(shown);
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

std::string RunSession::list_ranks(const std::vector<std::size_t>& ranks, char initial) const {
  if (ranks.size() == 1) return fmt::format("{}ank {}", initial, ranks.front());
  std::string text = fmt::format("{}anks ", initial);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
  return text;
}

}  // namespace accrue
