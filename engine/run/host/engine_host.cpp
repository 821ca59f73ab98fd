// SPDX-License-Identifier: Apache-2.0
// The studio and the command line use the same supervisor, which must neither block them nor share its state with them.
// So each run has one engine thread, which owns every descriptor and every process. Commands go in through a mailbox,
// events come out through the queue, and the state is an atomic copy: only the mailbox needs a lock.
#include "accrue/run/host/engine_host.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/monotonic_clock.h"
#include "accrue/run/base/sha256.h"
#include "accrue/run/facts/data_facts.h"
#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/host/run_limits.h"
#include "accrue/run/megatron/megatron_lowering.h"
#include "accrue/run/weights/start_weights.h"
#include "engine_host_impl.h"
#include "posix_file.h"
#include "run_folder.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

void block_signals() {
  sigset_t all;
  ::sigfillset(&all);
  for (const int synchronous : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) ::sigdelset(&all, synchronous);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

/// Returns the hash of spec.toml if it matches the plan, otherwise that of the expected text, so that "show" reports
/// the difference.
std::string spec_hash(const fs::path& dir, const RunPlan& plan) {
  const SpecReading reading = read_spec(dir / "spec.toml");
  const auto text = read_file(dir / "spec.toml");
  const bool same = text && reading.ok() && diff_specs(reading.spec, located_spec(plan)).empty();
  return sha256_hex(same ? *text : spec_as_run(plan));
}

std::uintmax_t record_bytes(const fs::path& dir) {
  std::error_code error;
  const auto bytes = fs::file_size(dir / "events.jsonl", error);
  return error ? 0 : bytes;
}

Error taken_over(const fs::path& dir) {
  return {ErrorCode::config, "another process trains this run", dir.string(), "Attach to it instead"};
}

/// Opens the folder to append, unless the run was continued since it was read.
Result<RunWriter> reopen_unchanged(const ResumeRequest& request) {
  if (record_bytes(request.dir) > request.record_bytes) return tl::unexpected(taken_over(request.dir));
  auto writer = RunWriter::reopen(request.dir);
  if (writer && record_bytes(request.dir) > request.record_bytes) return tl::unexpected(taken_over(request.dir));
  return writer;
}

/// The events also record a change of N during the run, so a plan with an unrecorded change is damaged. Missing or
/// unreadable events prove nothing.
Result<void> check_steps_record(const fs::path& dir, const RunPlan& plan) {
  if (plan.window.steps_set.empty()) return {};
  const auto history = read_events(dir / "events.jsonl");
  if (!history || history->problems.unreadable_lines > 0 || history->problems.missing_events > 0) return {};
  for (const LengthChange& set : plan.window.steps_set) {
    const bool recorded = std::ranges::any_of(history->events, [&](const RunEvent& event) {
      const auto* changed = std::get_if<StepsChanged>(&event.body);
      return changed != nullptr && changed->update == set.from && changed->steps == set.steps;
    });
    if (!recorded)
      return fail(ErrorCode::protocol,
                  fmt::format("the plan is damaged: it sets N to {} after update {}, which no event records", set.steps,
                              set.from),
                  (dir / "plan.json").string(), "Start the run again from its spec, or restore the run folder");
  }
  return {};
}

bool lies_inside(const fs::path& dir, const fs::path& folder) {
  std::error_code ignored;
  const fs::path inner = fs::weakly_canonical(dir, ignored), outer = fs::weakly_canonical(folder, ignored);
  return std::ranges::mismatch(outer, inner).in1 == outer.end();
}

/// `dir`: folder of the branch; empty: not chosen.
Result<void> check_branch_folder(const BranchPoint& from, const fs::path& dir) {
  if (dir.empty()) return {};
  const auto absolute = absolute_folder(dir);
  if (!absolute) return tl::unexpected(absolute.error());
  std::error_code ignored;
  if (fs::is_directory(*absolute, ignored))
    if (auto free = check_free(*absolute); !free) return free;
  if (!lies_inside(*absolute, from.run_dir)) return {};
  return fail(ErrorCode::config, "lies in the folder of the run that it branches from, which is only read",
              absolute->string(), "Choose a folder beside it");
}

Result<void> check_branch_request(const BranchPoint& from, const RunPlan& plan) {
  for (const Finding& finding : check_branch(from, plan))
    if (finding.severity == Severity::error)
      return fail(ErrorCode::config, finding.message, finding.key, "Leave it as it is, or start a new run");
  if (from.data_fingerprint != plan.data.fingerprint)
    return fail(ErrorCode::data, "the training data changed since the run began",
                data_path(plan.spec.data, plan.base_dir).string(), "Put the file back as it was, or start a new run");
  if (auto same = check_same_weights(plan.spec.model, from.weights_fingerprint, plan.weights_fingerprint); !same)
    return same;
  if (plan.totals.updates <= from.checkpoint.update)
    return fail(ErrorCode::config,
                fmt::format("the branch would end after update {}, and its checkpoint is of update {}",
                            plan.totals.updates, from.checkpoint.update),
                "run.updates", "Make the branch longer, or take an earlier checkpoint");
  if (from.checkpoint.position > 0 && recounts_micro_steps(from.spec, plan.spec))
    return fail(ErrorCode::config, "was taken inside a window, and the branch would cut that window differently",
                from.checkpoint_dir().string(), "Branch from a checkpoint between two windows");
  return {};
}

std::string length_key(const RunSpec& spec) {
  const RunSection& run = spec.run;
  const char* key = run.samples   ? "run.samples"
                    : run.tokens  ? "run.tokens"
                    : run.updates ? "run.updates"
                                  : "run.epochs";
  const LoweredMegatron lowered = lower_megatron(spec, empty_environment());
  const LoweredKey* setter = lowered.setter_of(key);
  return setter == nullptr ? key : setter->field_key();
}

Result<ResumeRequest> read_resumable(const fs::path& folder) {
  ResumeRequest request;
  auto absolute = absolute_folder(folder);
  if (!absolute) return tl::unexpected(absolute.error());
  fs::path dir = std::move(*absolute);
  std::string resume_from = "newest";
  if (dir.parent_path().filename() == "checkpoints") {  // one checkpoint of a run
    resume_from = dir.filename().string();
    dir = dir.parent_path().parent_path();
    if (const auto mark = named_checkpoint(dir, resume_from); mark.valid()) resume_from = checkpoint_name(mark);
  }
  if (auto own = check_not_imported(dir); !own) return tl::unexpected(own.error());
  request.dir = dir;
  request.record_bytes = record_bytes(request.dir);  // first: later reads may follow a change
  std::error_code error;
  if (resume_from != "newest" && (!checkpoint_mark(resume_from).valid() ||
                                  !fs::exists(request.dir / "checkpoints" / resume_from / "manifest.json", error)))
    return fail(
        ErrorCode::config, "is not a checkpoint of this run", (request.dir / "checkpoints" / resume_from).string(),
        "Name one of the folders step-N, or \"best\" if checkpoint.best keeps one; the run folder has the newest");
  auto order = read_run_order(request.dir / "plan.json");
  if (!order && !fs::exists(request.dir / "plan.json", error)) {
    if (const auto found = run_folder_at(request.dir); !found) return tl::unexpected(found.error());
    if (fs::exists(request.dir / "events.jsonl", error))
      return fail(ErrorCode::config, "is the run of a program with a loop of its own, which alone can go on with it",
                  request.dir.string(), "Start that program again with this folder");
    return fail(ErrorCode::config, "is not a run that can be continued: " + order.error().message,
                (request.dir / "plan.json").string(), "Give the folder that \"accrue-run run\" printed");
  }
  if (!order) return tl::unexpected(order.error());
  request.order = std::move(*order);
  // A copied folder is a run of its own: with the original's id it would receive the original's commands.
  if (fs::path(request.order.run_dir).lexically_normal() != request.dir) request.order.run_id = new_run_id();
  request.order.run_dir = request.dir;
  request.order.resume_from = resume_from;
  if (auto changes = check_steps_record(request.dir, request.order.plan); !changes)
    return tl::unexpected(changes.error());
  request.spec_sha256 = spec_hash(request.dir, request.order.plan);
  return request;
}

}  // namespace

EngineHost::Impl::Impl(EngineHostOptions options_in, EventQueue& queue_in)
    : options(std::move(options_in)), queue(queue_in), wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (options.rank_program.empty()) options.rank_program = default_rank_program();
}

EngineHost::Impl::~Impl() {
  shutting_down = true;
  post(HostVerb::shut_down);
}

Result<void> EngineHost::Impl::make_ready() {
  if (is_live(state.load())) return fail(ErrorCode::config, "a run is live here", {}, "Stop it first");
  if (thread.joinable()) {  // a run that is over, or a replay whose end is not awaited
    shutting_down = true;
    post(HostVerb::shut_down);
    thread.join();
    shutting_down = false;
  }
  const std::lock_guard lock(mutex);
  commands.clear();
  failure.reset();
  return {};
}

void EngineHost::Impl::launch(RunState first_state, fs::path dir, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex);
    run_dir = std::move(dir);
  }
  state = first_state;
  saw_end = false;
  held_end.reset();
  mirrored_update.reset();
  thread = std::jthread([this, work = std::move(work)] {
    block_signals();
    try {
      work();
    } catch (const std::exception& error) {
      // The session is destroyed by now: its ranks are killed and reaped, and its folder is unlocked.
      publish_failure({ErrorCode::internal, fmt::format("The supervisor failed: {}", error.what()), {}, {}});
    }
  });
}

void EngineHost::Impl::post(HostCommand command) {
  {
    const std::lock_guard lock(mutex);
    commands.push_back(command);
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake.get(), &one, sizeof one);
}

void EngineHost::Impl::publish(std::span<RunEvent> together) {
  queue.push(together);
  if (queue.size() != together.size()) return;  // the consumer was woken before and has not come yet
  std::function<void()> call;
  {
    const std::lock_guard lock(mutex);
    call = wakeup;
  }
  if (call) call();
}

void EngineHost::Impl::publish_state(RunState new_state, std::string detail) {
  state = new_state;
  publish({supervisor_rank, -1, 0, StateChanged{std::string(to_string(new_state)), std::move(detail), 0, 0}});
}

void EngineHost::Impl::publish_failure(Error error) {
  std::string text = error.text();
  {
    const std::lock_guard lock(mutex);
    failure = std::move(error);
  }
  publish_state(RunState::failed, std::move(text));
}

void EngineHost::Impl::publish_refusal(const std::string& why) {
  publish({supervisor_rank, -1, 0, Warning{std::string(refusal_class), "The run refused: " + why, {}, 0}});
}

bool EngineHost::Impl::wait(std::vector<pollfd>& fds, int timeout_ms) {
  fds.push_back({wake.get(), POLLIN, 0});
  ::poll(fds.data(), fds.size(), timeout_ms);
  std::uint64_t count = 0;
  [[maybe_unused]] const auto taken = ::read(wake.get(), &count, sizeof count);
  return !shutting_down;
}

std::vector<HostCommand> EngineHost::Impl::take_commands() {
  const std::lock_guard lock(mutex);
  std::vector<HostCommand> taken(commands.begin(), commands.end());
  commands.clear();
  return taken;
}

void EngineHost::Impl::supervise(SessionRequest request) {
  constexpr int longest_sleep_ms = 100;
  RunSession session(
      std::move(request), {options.rank_program, options.stop_grace},
      [this](std::span<RunEvent> together) { publish(together); }, [this](RunState new_state) { state = new_state; });
  session.begin();
  while (!session.over()) {
    std::vector<pollfd> fds;
    session.add_poll(fds);
    wait(fds, longest_sleep_ms);
    for (const auto& command : take_commands()) {
      const auto done = session.command(command);
      // The other refusals need no message: the state that the owner sees explains them.
      const bool needs_words = command.verb == HostVerb::set_steps || command.verb == HostVerb::step_phase;
      if (!done && needs_words) publish_refusal(done.error().message);
    }
    session.turn();
  }
}

/// Waits until ranks without a supervisor have saved. If a supervisor takes the run meanwhile, it keeps it. Errors
/// (cancelled): the user stopped the wait.
Result<RunWriter> EngineHost::Impl::wait_for_folder(const ResumeRequest& request) {
  using Clock = std::chrono::steady_clock;
  constexpr auto patience = std::chrono::seconds(60);
  const fs::path& dir = request.dir;
  const auto deadline = Clock::now() + patience;
  std::size_t shown = 0;
  for (;;) {
    const bool last_try = Clock::now() > deadline;
    if (!is_locked(dir) || last_try) {
      auto writer = reopen_unchanged(request);
      if (writer || !is_locked(dir) || last_try) return writer;
    }
    if (ControlClient::connect(request.order.run_id)) return tl::unexpected(taken_over(dir));
    const auto saving = ranks_of_run(dir);
    if (saving.size() != shown || shown == 0)
      publish_state(RunState::starting,
                    fmt::format("{} {} saving", counted(static_cast<std::int64_t>(saving.size()), "rank"),
                                saving.size() == 1 ? "is" : "are"));
    shown = saving.size();
    std::vector<pollfd> fds;
    const bool go_on = wait(fds, 50);
    for (const auto& command : take_commands()) {
      if (command.verb == HostVerb::kill)
        for (const auto pid : ranks_of_run(dir)) ::kill(pid, SIGKILL);
      if (command.verb == HostVerb::stop || command.verb == HostVerb::checkpoint_and_stop)
        return fail(ErrorCode::cancelled, "Stopped by you");
    }
    if (!go_on) return fail(ErrorCode::cancelled, "Stopped by you");
  }
}

void EngineHost::Impl::resume(ResumeRequest request) {
  auto writer = request.writer ? Result<RunWriter>(std::move(*request.writer)) : wait_for_folder(request);
  if (!writer && writer.error().code == ErrorCode::cancelled)
    return publish_state(RunState::finished, writer.error().message);
  if (!writer) return publish_failure(writer.error());
  // The run's clock continues from its last event: the time in between is not training time.
  request.order.origin_ns = monotonic_ns() - writer->last_time_ns();
  request.order.interactive = options.interactive;
  request.order.paused = false;
  supervise(continued_session(std::move(request.order), std::move(*writer), std::move(request.spec_sha256)));
}

EngineHost::EngineHost(EngineHostOptions options)
    : queue_(options.queue_capacity), impl_(std::make_unique<Impl>(std::move(options), queue_)) {}

EngineHost::~EngineHost() = default;

Result<fs::path> EngineHost::start(RunRequest request) {
  return impl_->start(std::move(request), nullptr);
}

Result<fs::path> EngineHost::branch(const BranchPoint& from, RunRequest request) {
  if (auto free = check_branch_folder(from, request.run_dir); !free) return tl::unexpected(free.error());
  if (auto fits = check_branch_request(from, request.plan); !fits) return tl::unexpected(fits.error());
  return impl_->start(std::move(request), &from);
}

Result<fs::path> EngineHost::Impl::start(RunRequest request, const BranchPoint* from) {
  if (auto ready = make_ready(); !ready) return tl::unexpected(ready.error());
  if (auto fits = check_limits(request.plan); !fits) return tl::unexpected(fits.error());
  RunOrder order;
  order.run_id = new_run_id();
  const fs::path dir = request.run_dir.empty() ? default_runs_dir() / order.run_id : request.run_dir;
  const std::string spec = spec_as_run(request.plan);
  auto writer = RunWriter::create(dir, spec);
  if (!writer) return tl::unexpected(writer.error());
  order.plan = std::move(request.plan);
  order.plugins = std::move(request.plugins);
  order.plan.base_dir = fs::absolute(order.plan.base_dir);
  order.run_dir = writer->dir();
  order.origin_ns = monotonic_ns();
  order.interactive = options.interactive;
  order.paused = request.paused;
  order.first_seq.assign(static_cast<std::size_t>(order.plan.grid.world()), 0);
  Result<void> written;
  if (from != nullptr) {
    order.resume_from = "newest";
    order.branched_from = from->run_id;
    order.branched_at = from->checkpoint.update;
    for (const SpecDifference& each : diff_specs(from->spec, located_spec(order.plan)))
      order.changed_keys.emplace_back(each.key);
    if (recounts_micro_steps(from->spec, order.plan.spec)) order.recounts_at = from->checkpoint.update;
    written = copy_checkpoint(*from, writer->dir());
  }
  if (written) written = writer->write_plan(to_json(order));
  if (!written) {
    std::error_code ignored;
    if (from != nullptr) fs::remove_all(writer->dir() / "checkpoints" / checkpoint_name(from->checkpoint), ignored);
    writer->give_up();
    return tl::unexpected(written.error());
  }

  attached = false;
  const fs::path new_dir = writer->dir();
  auto session = std::make_shared<SessionRequest>(new_session(std::move(order), std::move(*writer), sha256_hex(spec)));
  session->resumed = from != nullptr;
  if (from != nullptr) session->last_update = from->last;
  if (from != nullptr && from->last) session->tally = RunTally(0.0, {}, from->last->loss);
  launch(RunState::starting, new_dir, [this, session] { supervise(std::move(*session)); });
  return new_dir;
}

namespace {

/// Libraries are identified by their contents, at any place.
Result<void> take_places(std::vector<PluginRecord>& recorded, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const auto hash = sha256_of_file(file);
    if (!hash) return tl::unexpected(hash.error());
    const auto same = std::ranges::find(recorded, *hash, &PluginRecord::sha256);
    if (same == recorded.end())
      return fail(ErrorCode::config, "the run did not begin with this plug-in library: its SHA-256 is " + *hash, file,
                  "Give the libraries that the run began with, or start a new run.");
    same->file = fs::absolute(file).string();
  }
  return {};
}

}  // namespace

Result<fs::path> EngineHost::resume(const fs::path& folder, const std::vector<std::string>& plugins) {
  if (auto ready = impl_->make_ready(); !ready) return tl::unexpected(ready.error());
  auto request = read_resumable(folder);
  if (!request) return tl::unexpected(request.error());
  if (auto fits = check_limits(request->order.plan); !fits) return tl::unexpected(fits.error());
  if (auto known = take_places(request->order.plugins, plugins); !known) return tl::unexpected(known.error());
  const fs::path dir = request->dir;
  if (is_locked(dir)) {
    if (ControlClient::connect(request->order.run_id)) return tl::unexpected(taken_over(dir));
  } else {
    const auto run = read_run(dir);
    if (run && run->state == "finished") {
      clear_dead_sockets(request->order.run_id);
      if (auto completed = complete_record(*run); !completed) return tl::unexpected(completed.error());
      const RunSpec& spec = request->order.plan.spec;
      const bool early = spec.run.stop_when != RunMeasure::none && run->updates < run->planned_updates;
      return fail(ErrorCode::config, "the run is complete: there is nothing to continue", dir.string(),
                  fmt::format("A longer run is a branch: accrue-run resume {} --out NEW --set {}=...", dir.string(),
                              early ? "run.patience" : length_key(spec)));
    }
    auto writer = reopen_unchanged(*request);
    if (!writer) return tl::unexpected(writer.error());
    request->writer = std::move(*writer);
  }
  impl_->attached = false;
  auto shared = std::make_shared<ResumeRequest>(std::move(*request));
  impl_->launch(RunState::starting, dir, [impl = impl_.get(), shared] { impl->resume(std::move(*shared)); });
  return dir;
}

Result<void> EngineHost::attach(const fs::path& folder) {
  if (auto ready = impl_->make_ready(); !ready) return ready;
  const auto run = read_run(folder);
  if (!run) return tl::unexpected(run.error());
  const fs::path dir = run->dir;
  if (run->state != "running") return tl::unexpected(not_trained(*run));
  std::optional<ControlClient> control;
  if (auto client = ControlClient::connect(run->run_id)) control = std::move(*client);
  impl_->attached = true;
  impl_->watches_only = !control.has_value();
  auto shared = std::make_shared<std::optional<ControlClient>>(std::move(control));
  impl_->launch(RunState::running, dir,
                [impl = impl_.get(), dir, id = run->run_id, shared] { impl->follow(dir, id, std::move(*shared)); });
  return {};
}

Result<void> EngineHost::replay(const fs::path& folder) {
  if (auto ready = impl_->make_ready(); !ready) return ready;
  const auto dir = absolute_folder(folder);
  if (!dir) return tl::unexpected(dir.error());
  if (auto file = EventFile::open(*dir / "events.jsonl"); !file) return tl::unexpected(file.error());
  impl_->attached = false;
  impl_->launch(RunState::idle, *dir, [impl = impl_.get(), dir = *dir] { impl->replay(dir); });
  return {};
}

void EngineHost::pause() {
  impl_->post(HostVerb::pause);
}
void EngineHost::proceed() {
  impl_->post(HostVerb::proceed);
}
void EngineHost::step(StepUnit unit) {
  impl_->post(unit == StepUnit::phase        ? HostVerb::step_phase
              : unit == StepUnit::micro_step ? HostVerb::step_micro_step
                                             : HostVerb::step_update);
}
void EngineHost::stop() {
  impl_->post(HostVerb::stop);
}
void EngineHost::checkpoint() {
  impl_->post(HostVerb::checkpoint);
}
void EngineHost::checkpoint_and_stop() {
  impl_->post(HostVerb::checkpoint_and_stop);
}
void EngineHost::kill() {
  impl_->post(HostVerb::kill);
}

void EngineHost::set_steps(std::int64_t steps) {
  impl_->post({HostVerb::set_steps, steps});
}

RunState EngineHost::state() const {
  return impl_->state.load();
}

fs::path EngineHost::run_dir() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->run_dir;
}

std::optional<Error> EngineHost::failure() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->failure;
}

bool EngineHost::attached() const {
  return impl_->attached.load();
}

bool EngineHost::controls() const {
  return !impl_->attached.load() || !impl_->watches_only.load();
}

void EngineHost::set_wakeup(std::function<void()> wakeup) {
  const std::lock_guard lock(impl_->mutex);
  impl_->wakeup = std::move(wakeup);
}

}  // namespace accrue
