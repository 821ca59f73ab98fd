// SPDX-License-Identifier: GPL-3.0-or-later
// EngineBridge: sends commands to an EngineHost and delivers its events in batches, one per frame. The state is that of
// the last batch, so the window's state always matches the drawn events.
#pragma once

#include <QObject>
#include <QString>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/events/run_state.h"
#include "accrue/run/megatron/plugin_facts.h"
#include "accrue/run/plan/run_plan.h"
#include "event_pump.h"

namespace accrue {
struct BranchPoint;
class EngineHost;
}  // namespace accrue

namespace accrue::ui {

struct BridgeOptions {
  std::string rank_program;  ///< path of accrue-rank; empty: beside this program
  std::chrono::milliseconds stop_grace{5000};
  bool interactive = true;  ///< a run with non-finite values pauses and asks the user; otherwise it fails
};

/// The rank program that these options select.
std::string rankProgram(const BridgeOptions& options);

/// A run to start.
struct RunStart {
  RunPlan plan;
  std::vector<PluginRecord> libraries{};  ///< that its ranks load
  std::filesystem::path run_dir{};        ///< empty: a new folder
  bool paused = false;                    ///< the ranks hold before the first micro-step
};

/// A started branch, and its host.
struct BranchStart {
  BranchStart(std::unique_ptr<EngineHost> made, Result<std::filesystem::path> dir);
  BranchStart(BranchStart&&) noexcept;
  ~BranchStart();
  std::unique_ptr<EngineHost> host;
  Result<std::filesystem::path> folder;
};

/// Bridge to one run at a time: hosted here, or attached.
/// Thread: GUI. No call waits for the engine.
class EngineBridge : public QObject {
  Q_OBJECT

 public:
  explicit EngineBridge(BridgeOptions options, QObject* parent = nullptr);
  /// Stops a hosted run, kills its ranks if they do not stop, and joins the engine thread; detaches from any other.
  ~EngineBridge() override;

  Result<std::filesystem::path> start(RunStart run);
  /// `libraries`: new locations of plug-in libraries of the run that have moved.
  Result<std::filesystem::path> resume(const std::filesystem::path& run_dir,
                                       const std::vector<std::string>& libraries = {});
  /// Starts a run in its own folder from another run's checkpoint. The checkpoint is copied, which takes time on the
  /// disk. Pass the result to follow(). Thread: any.
  static BranchStart startBranch(const BridgeOptions& options, const BranchPoint& from, RunStart run);
  Result<std::filesystem::path> follow(BranchStart branch);
  Result<void> attach(const std::filesystem::path& run_dir);

  void pause();
  void proceed();
  void stepPhase();
  void stepMicro();
  void stepUpdate();
  void stop();
  void kill();
  void checkpoint();
  void checkpointAndStop();
  void setSteps(std::int64_t steps);

  /// State after the last batch; the engine may be one frame ahead.
  RunState state() const { return state_; }
  QString detail() const { return detail_; }
  bool attached() const;
  /// Number of the run's events that were dropped because they arrived too fast; its folder has all of them.
  std::int64_t dropped() const;
  /// Whether commands reach the run; false if it can only be watched.
  bool controls() const;
  const BridgeOptions& options() const { return options_; }

 Q_SIGNALS:
  void batch(const accrue::ui::EventBatch& events);
  /// Emitted after the batch with the change.
  void stateChanged(accrue::RunState state, const QString& detail);

 private:
  void takeBatch(const EventBatch& events);
  void beginFollowing();

  BridgeOptions options_;
  std::unique_ptr<EngineHost> host_;
  EventPump pump_;
  RunState state_ = RunState::idle;
  QString detail_;
};

}  // namespace accrue::ui
