// SPDX-License-Identifier: Apache-2.0
#include "run/host_fixture.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <QTest>
#include <fstream>

#include "accrue/run/preflight/preflight.h"
#include "accrue/run/record/run_store.h"
#include "support/places.h"

namespace accrue_test {

using namespace accrue;

namespace {

/// Children of this process, zombies included.
int child_count() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    for (pid_t pid = 0; children >> pid;) ++count;
  }
  return count;
}

}  // namespace

RunPlan small_plan(const PlanOptions& options) {
  RunSpec spec;
  spec.model.kind = ModelKind::mlp;
  spec.model.hidden = {4};
  spec.data.kind = DataKind::synthetic;
  spec.data.samples = 4096;
  spec.accumulation.steps = options.steps;
  spec.accumulation.micro_batch = 2;
  spec.parallel.data = options.ranks;
  spec.launch.threads_per_rank = 1;
  spec.launch.join_timeout_s = options.join_timeout_s;
  spec.launch.stall_timeout_s = options.stall_timeout_s;
  spec.launch.max_restarts = options.max_restarts;
  spec.run.updates = options.updates;
  spec.checkpoint.every_updates = options.checkpoint_every;
  auto checked = preflight_files(spec, local_facts(), std::filesystem::temp_directory_path());
  for (const auto& finding : checked.findings)
    if (finding.severity == Severity::error) qFatal("%s", finding.text().c_str());
  return *checked.plan;
}

EngineHostOptions fake_options() {
  EngineHostOptions options;
  options.rank_program = accrue::test::programPath("accrue-fake-rank").toStdString();
  options.stop_grace = std::chrono::milliseconds(1500);
  return options;
}

WatchedHost::WatchedHost(const EngineHostOptions& options) : EngineHost(options) {
  set_wakeup([this] {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  });
}

WatchedHost::WatchedHost(const char* script, const EngineHostOptions& options) : WatchedHost(options) {
  scripted_ = true;
  qputenv("ACCRUE_FAKE_RANK", script);
}

WatchedHost::WatchedHost(const char* script, const std::filesystem::path& dir, const PlanOptions& plan)
    : WatchedHost(script) {
  if (const auto started = start({small_plan(plan), dir}); !started) qFatal("%s", started.error().text().c_str());
}

WatchedHost::~WatchedHost() {
  set_wakeup({});
  if (scripted_) qunsetenv("ACCRUE_FAKE_RANK");
}

void WatchedHost::drain() {
  for (auto& event : events().drain()) events_.push_back(std::move(event));
}

std::optional<RunEvent> WatchedHost::wait(const Check& check, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    drain();
    for (std::size_t i = from_; i < events_.size(); ++i)
      if (check(events_[i])) return events_[i];
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, deadline, [this] { return woken_; })) return std::nullopt;
    woken_ = false;
  }
}

std::optional<StateChanged> WatchedHost::wait_for_state(const std::string& state, std::chrono::milliseconds limit) {
  return wait_for<StateChanged>([&](const StateChanged& changed) { return changed.state == state; }, limit);
}

std::optional<Update> WatchedHost::wait_for_update(std::int64_t update) {
  return wait_for<Update>([update](const Update& each) { return each.update == update; });
}

std::optional<Warning> WatchedHost::wait_for_warning(const std::string& words, std::chrono::milliseconds limit) {
  return wait_for<Warning>([&](const Warning& each) { return each.message.find(words) != std::string::npos; }, limit);
}

bool WatchedHost::warned_of_a_hang() {
  return wait_for<Warning>([](const Warning& each) { return each.class_name == "hang"; }, {}).has_value();
}

bool WatchedHost::ends(const char* outcome, int exit_status, std::chrono::milliseconds limit) {
  end = wait_for<RunFinished>(limit);
  return end && end->outcome == outcome && end->exit_status == exit_status;
}

void WatchedHost::forget() {
  drain();
  from_ = events_.size();
}

std::map<std::int64_t, pid_t> WatchedHost::rank_pids(std::int64_t ranks) {
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    wait([rank](const RunEvent& e) { return e.rank == rank && std::holds_alternative<RankReady>(e.body); });
  std::map<std::int64_t, pid_t> pids;
  for (const auto& event : events_)
    if (const auto* ready = std::get_if<RankReady>(&event.body)) pids[event.rank] = static_cast<pid_t>(ready->pid);
  return pids;
}

std::string WatchedHost::story() const {
  constexpr std::size_t shown = 900;  // Qt Test cuts longer messages off
  std::string text;
  for (const auto& event : events_) {
    const auto* changed = std::get_if<StateChanged>(&event.body);
    const auto* warning = std::get_if<Warning>(&event.body);
    const auto* failed = std::get_if<RankFailed>(&event.body);
    const auto* finished = std::get_if<RunFinished>(&event.body);
    const auto* update = std::get_if<Update>(&event.body);
    if (changed != nullptr)
      text += "\n" + changed->state + ": " + changed->detail + " @" + std::to_string(changed->micro_step);
    else if (warning != nullptr)
      text += "\nwarning: " + warning->message;
    else if (failed != nullptr)
      text += "\nfailed: " + failed->message;
    else if (finished != nullptr)
      text += "\nend: " + finished->outcome + " " + finished->reason;
    else if (update != nullptr)
      text += " u" + std::to_string(update->update);
  }
  return text.size() > shown ? text.substr(text.size() - shown) : text;
}

void HostHome::take_over() const {
  const auto runtime = path() / "runtime";
  std::filesystem::create_directories(runtime);
  qputenv("XDG_RUNTIME_DIR", runtime.c_str());
}

std::filesystem::path HostHome::fresh() {
  return path() / ("run" + std::to_string(++count_));
}

std::string HostHome::leftovers() const {
  if (!eventually([] { return child_count() == 0; })) return "a child of this process";
  std::error_code error;
  for (const auto& socket : std::filesystem::directory_iterator(path() / "runtime" / "accrue", error))
    return socket.path().string();
  for (int i = 1; i <= count_; ++i) {
    const auto run = path() / ("run" + std::to_string(i));
    if (std::filesystem::exists(run) && is_locked(run)) return run.string() + " is locked";
  }
  return {};
}

bool process_exists(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ::poll(nullptr, 0, 10);
  }
  return true;
}

}  // namespace accrue_test
