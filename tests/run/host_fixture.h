// SPDX-License-Identifier: Apache-2.0
// A small plan, and an EngineHost with fake ranks whose events are waited for with a deadline.
#pragma once

#include <sys/types.h>

#include <QTemporaryDir>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/host/engine_host.h"

namespace accrue_test {

struct PlanOptions {
  std::int64_t ranks = 2;
  std::int64_t steps = 4;
  std::int64_t updates = 5;
  std::int64_t checkpoint_every = 0;
  std::int64_t max_restarts = 0;
  double stall_timeout_s = 30.0;
  double join_timeout_s = 10.0;
};
accrue::RunPlan small_plan(const PlanOptions& options = {});

/// Options that start the fake rank.
accrue::EngineHostOptions fake_options();

/// A host of which everything is kept that it says.
class WatchedHost : public accrue::EngineHost {
 public:
  explicit WatchedHost(const accrue::EngineHostOptions& options = fake_options());
  /// With fake ranks that do what the script says, until the host goes.
  explicit WatchedHost(const char* script, const accrue::EngineHostOptions& options = fake_options());
  /// And starts a run of them in a folder.
  WatchedHost(const char* script, const std::filesystem::path& dir, const PlanOptions& plan = {});
  ~WatchedHost();

  using Check = std::function<bool(const accrue::RunEvent&)>;
  /// The first event that passes, of those that are not forgotten; empty after the deadline.
  std::optional<accrue::RunEvent> wait(const Check& check, std::chrono::milliseconds limit = std::chrono::seconds(10));
  /// The first of a kind that passes.
  template <typename Body>
  std::optional<Body> wait_for(const std::function<bool(const Body&)>& check,
                               std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    const auto event = wait(
        [&](const accrue::RunEvent& each) {
          const auto* body = std::get_if<Body>(&each.body);
          return body != nullptr && check(*body);
        },
        limit);
    if (!event) return std::nullopt;
    return std::get<Body>(event->body);
  }
  template <typename Body>
  std::optional<Body> wait_for(std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    return wait_for<Body>([](const Body&) { return true; }, limit);
  }
  std::optional<accrue::StateChanged> wait_for_state(const std::string& state,
                                                     std::chrono::milliseconds limit = std::chrono::seconds(10));
  std::optional<accrue::Update> wait_for_update(std::int64_t update);
  /// A warning with these words.
  std::optional<accrue::Warning> wait_for_warning(const std::string& words,
                                                  std::chrono::milliseconds limit = std::chrono::seconds(10));
  bool warned_of_a_hang();
  /// Waits for the end, which is kept in `end`.
  bool ends(const char* outcome, int exit_status, std::chrono::milliseconds limit = std::chrono::seconds(15));
  std::optional<accrue::RunFinished> end;
  /// Later waits see only what comes from now on.
  void forget();

  const std::vector<accrue::RunEvent>& all() const { return events_; }
  template <typename Body>
  std::vector<Body> all_of() const {
    std::vector<Body> found;
    for (const auto& event : events_)
      if (const auto* body = std::get_if<Body>(&event.body)) found.push_back(*body);
    return found;
  }
  /// Process ids by rank, once so many ranks have said that they are ready: rank 0's first update says nothing about
  /// the others' events. To be called before forget().
  std::map<std::int64_t, pid_t> rank_pids(std::int64_t ranks = 2);
  /// Returns the observed events, for messages of failed checks.
  std::string story() const;

 private:
  void drain();

  bool scripted_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  std::vector<accrue::RunEvent> events_;
  std::size_t from_ = 0;
};

/// Fails the test function with what `host` has said.
#define VERIFY_STORY(condition) QVERIFY2((condition), host.story().c_str())

/// A home for runs and control sockets, which this process uses and which goes with the test.
class HostHome {
 public:
  HostHome() { take_over(); }
  void take_over() const;
  std::filesystem::path path() const { return folder_.path().toStdString(); }
  /// The folder of a run that is not there yet.
  std::filesystem::path fresh();
  /// After a test there is no process, zombie, socket or lock: the first of them that stays; empty if none does.
  std::string leftovers() const;

 private:
  QTemporaryDir folder_;
  int count_ = 0;
};

bool process_exists(pid_t pid);
/// Polls until the condition holds or the time is up.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = std::chrono::seconds(5));

}  // namespace accrue_test
