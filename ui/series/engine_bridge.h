// SPDX-License-Identifier: GPL-3.0-or-later
// EngineBridge: commands go down to an EngineHost, its events come up in batches, one a frame. The state is that of the
// last batch, so that the state a window shows always matches the events it has drawn.
#pragma once

#include <QObject>
#include <QString>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "accrue/run/plugin_facts.h"
#include "accrue/run/result.h"
#include "accrue/run/run_plan.h"
#include "accrue/run/run_state.h"
#include "event_pump.h"

namespace accrue {
struct BranchPoint;
class EngineHost;
}  // namespace accrue

namespace accrue::ui {

struct BridgeOptions {
  std::string rank_program;  ///< path of accrue-rank; empty: beside this program
  std::chrono::milliseconds stop_grace{5000};
  bool interactive = true;  ///< a run with non-finite values pauses and asks the user; else it fails
};

/// The rank program that these options select.
std::string rankProgram(const BridgeOptions& options);

/// A run that is to begin.
struct RunStart {
  RunPlan plan;
  std::vector<PluginRecord> libraries{};  ///< that its ranks load
  std::filesystem::path run_dir{};        ///< empty: a new folder
  bool paused = false;                    ///< the ranks hold before the first micro-step
};

/// A branch that has been started, and its host.
struct BranchStart {
  BranchStart(std::unique_ptr<EngineHost> made, Result<std::filesystem::path> dir);
  BranchStart(BranchStart&&) noexcept;
  ~BranchStart();
  std::unique_ptr<EngineHost> host;
  Result<std::filesystem::path> folder;
};

/// Follows one run at a time: hosted here or attached to.
/// Thread: GUI. No call waits for the engine.
class EngineBridge : public QObject {
  Q_OBJECT

 public:
  explicit EngineBridge(BridgeOptions options, QObject* parent = nullptr);
  /// Stops a hosted run, kills its ranks if they do not stop, and joins the engine thread; detaches from any other.
  ~EngineBridge() override;

  Result<std::filesystem::path> start(RunStart run);
  /// `libraries`: where plug-in libraries of the run that have moved lie now.
  Result<std::filesystem::path> resume(const std::filesystem::path& run_dir,
                                       const std::vector<std::string>& libraries = {});
  /// A run in a folder of its own that goes on from another's checkpoint, which is copied: that takes as long as the
  /// disk. Thread: any. The answer is for follow().
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

  /// As of the last batch; the engine may be ahead of it by one frame.
  RunState state() const { return state_; }
  QString detail() const { return detail_; }
  bool attached() const;
  /// Events of the followed run that were left out because they arrived faster than they could be taken; the run's
  /// folder has them all.
  std::int64_t dropped() const;
  /// False while the followed run can only be watched.
  bool controls() const;
  const BridgeOptions& options() const { return options_; }

 Q_SIGNALS:
  void batch(const accrue::ui::EventBatch& events);
  /// After the batch that carried the change.
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
