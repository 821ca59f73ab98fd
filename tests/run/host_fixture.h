// SPDX-License-Identifier: Apache-2.0
// A small plan, an EngineHost with fake ranks, and an observer that waits for events with a deadline.
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

#include "accrue/run/engine_host.h"

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
accrue::RunPlan small_plan(const PlanOptions& options);

/// Collects everything that a host says.
class Observer {
 public:
  explicit Observer(accrue::EngineHost& host);
  ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  using Check = std::function<bool(const accrue::RunEvent&)>;
  /// The first event from `from` on that passes; empty after the deadline.
  std::optional<accrue::RunEvent> wait(const Check& check, std::chrono::milliseconds limit = std::chrono::seconds(10));
  std::optional<accrue::StateChanged> wait_for_state(const char* state,
                                                     std::chrono::milliseconds limit = std::chrono::seconds(10));
  std::optional<accrue::RunFinished> wait_for_end(std::chrono::milliseconds limit = std::chrono::seconds(15));
  template <typename Body>
  std::optional<Body> wait_for(std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    const auto event = wait([](const auto& e) { return std::holds_alternative<Body>(e.body); }, limit);
    if (!event) return std::nullopt;
    return std::get<Body>(event->body);
  }
  /// Later waits see only what comes from now on.
  void forget();
  const std::vector<accrue::RunEvent>& all() const { return events_; }
  /// What was seen, for messages of failed checks.
  std::string story() const;

 private:
  void drain();

  accrue::EngineHost& host_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  std::vector<accrue::RunEvent> events_;
  std::size_t from_ = 0;
};

/// Options that start the fake rank.
accrue::EngineHostOptions fake_options();
/// Sets what the fake ranks do until it goes.
class FakeScript {
 public:
  explicit FakeScript(const char* script);
  ~FakeScript();
};

/// A home for runs and control sockets that goes with the test.
class HostHome {
 public:
  /// Makes this process use it.
  void take_over() const;
  std::filesystem::path path() const { return folder_.path().toStdString(); }
  /// The folder of a run that is not there yet.
  std::filesystem::path fresh();
  /// The first socket or lock that a run left behind; empty if there is none.
  std::string leftovers() const;

 private:
  QTemporaryDir folder_;
  int count_ = 0;
};

/// Process ids by rank, once so many ranks have said that they are ready: rank 0's first update says nothing about the
/// others' events. To be called before forget().
std::map<std::int64_t, pid_t> rank_pids(Observer& observer, std::int64_t ranks = 2);
bool process_exists(pid_t pid);
/// Polls until the condition holds or the time is up.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = std::chrono::seconds(5));
/// Children of this process, zombies included.
int child_count();

}  // namespace accrue_test
