// SPDX-License-Identifier: Apache-2.0
// EngineHost: the supervisor's interface. It owns one thread, which starts and watches the rank processes of one run,
// is the only writer of the run's record, answers its control socket, and fills the event queue. A lost rank ends the
// others; the run then restarts from its newest checkpoint or fails (session_failures.cpp). The studio and accrue-run
// use the same host. A host runs one run at a time; make one per run. Thread: one thread owns a host and calls its
// methods. Each returns at once; its effects come back as events, StateChanged first.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "accrue/run/base/result.h"
#include "accrue/run/events/event_queue.h"
#include "accrue/run/events/host_command.h"
#include "accrue/run/events/run_state.h"
#include "accrue/run/host/rank_program.h"
#include "accrue/run/megatron/plugin_facts.h"
#include "accrue/run/plan/run_plan.h"
#include "accrue/run/record/branch.h"

namespace accrue {

struct EngineHostOptions {
  std::string rank_program;  ///< path of accrue-rank; empty: default_rank_program()
  std::size_t queue_capacity = 65536;
  bool interactive = false;                    ///< a user can answer a pause on non-finite values
  std::chrono::milliseconds stop_grace{5000};  ///< time that ranks have to stop before they are killed
};

struct RunRequest {
  RunPlan plan;
  std::filesystem::path run_dir;           ///< empty: a new folder in default_runs_dir()
  bool paused = false;                     ///< the ranks hold before the first micro-step until a user continues
  std::vector<PluginRecord> plugins = {};  ///< libraries that the ranks load
};

/// Class of the warning about a command without effect.
inline constexpr std::string_view refusal_class = "refused";

class EngineHost {
 public:
  explicit EngineHost(EngineHostOptions options);
  /// Ends the run (asks the ranks to stop, then kills the rest) and joins the engine thread. Never leaves a process
  /// behind.
  ~EngineHost();
  EngineHost(const EngineHost&) = delete;
  EngineHost& operator=(const EngineHost&) = delete;

  /// Starts a run. Errors: the folder exists or cannot be made, a limit of this process is too low (check_limits), a
  /// run is already live in this host.
  Result<std::filesystem::path> start(RunRequest request);
  /// Continues an interrupted, stopped or failed run from its newest checkpoint that verifies, or from a given one
  /// (<run>/checkpoints/step-<n>). Without any checkpoints it starts from the beginning. If checkpoints exist and none
  /// verifies, the run fails and keeps them unchanged. Waits for orphans that still save. `plugins`: new locations of
  /// the run's plug-in libraries, if they moved. Errors: not a run folder, complete already, of a newer version,
  /// trained by another process, a limit of this process is too low, a file in `plugins` that is not one of the run's
  /// libraries.
  Result<std::filesystem::path> resume(const std::filesystem::path& run_dir,
                                       const std::vector<std::string>& plugins = {});
  /// Starts a run from another run's checkpoint, which is copied into the new folder; the other run is only read.
  /// Errors: those of start(); the plan's spec changes a key that must stay (check_branch) or ends before the
  /// checkpoint; the data changed; the checkpoint lies inside a window that the branch would cut differently.
  Result<std::filesystem::path> branch(const BranchPoint& from, RunRequest request);
  /// Follows a run of another process: history from events.jsonl, commands through its control socket.
  Result<void> attach(const std::filesystem::path& run_dir);
  /// Replays a folder's events into the queue, up to its final state. No rank is started.
  Result<void> replay(const std::filesystem::path& run_dir);

  void pause();                ///< every rank pauses after the same micro-step, or window on a pipeline
  void proceed();              ///< continue
  void step(StepUnit unit);    ///< while paused: one phase or micro-step, or to the next boundary
  void stop();                 ///< after the micro-step, or window on a pipeline; an open window is dropped
  void checkpoint();           ///< at the next boundary
  void checkpoint_and_stop();  ///< at the next boundary, then end
  void kill();                 ///< at once
  /// Sets N from the next window on. The ranks agree on the boundary, and a steps_changed event reports it. Dialects
  /// accrue and accelerate; the others have one N per run.
  void set_steps(std::int64_t steps);

  EventQueue& events() { return queue_; }
  RunState state() const;
  std::filesystem::path run_dir() const;
  /// Returns why the state is `failed` without a run_finished event: a run that could not be taken over or followed.
  std::optional<Error> failure() const;
  bool attached() const;  ///< commands go to another process
  bool controls() const;  ///< commands reach the ranks; false for a run that can only be watched
  /// Called on the engine thread after a push to the empty queue, for a consumer that sleeps (accrue-run). May be
  /// empty.
  void set_wakeup(std::function<void()> wakeup);

 private:
  struct Impl;
  EventQueue queue_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace accrue
