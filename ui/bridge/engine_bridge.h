// SPDX-License-Identifier: GPL-3.0-or-later
// EngineBridge: commands go down to an EngineHost, its events come up in batches of one frame. The state shown is the
// one that the last batch told, so that what a window says and what it has drawn belong together.
#pragma once

#include <QObject>
#include <QString>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "accrue/run/result.h"
#include "accrue/run/run_plan.h"
#include "accrue/run/run_state.h"
#include "event_pump.h"

namespace accrue {
class EngineHost;
}

namespace accrue::ui {

struct BridgeOptions {
  std::string rank_program;  ///< path of accrue-rank; empty: beside this program
  std::chrono::milliseconds stop_grace{5000};
  bool interactive = true;  ///< somebody answers a run that stands still on non-finite values; else it fails
};

/// The rank program that these options mean.
std::string rankProgram(const BridgeOptions& options);

/// Follows one run at a time: hosted here or attached to.
/// Thread: GUI. No call waits for the engine.
class EngineBridge : public QObject {
  Q_OBJECT

 public:
  explicit EngineBridge(BridgeOptions options, QObject* parent = nullptr);
  /// Stops a hosted run, kills its ranks if they do not stop, and joins the engine thread; detaches from any other.
  ~EngineBridge() override;

  Result<std::filesystem::path> start(RunPlan plan, std::filesystem::path run_dir = {});
  Result<std::filesystem::path> resume(const std::filesystem::path& run_dir);
  Result<void> attach(const std::filesystem::path& run_dir);

  void pause();
  void proceed();
  void stepMicro();
  void stepUpdate();
  void stop();
  void kill();
  void checkpoint();
  void checkpointAndStop();
  void setSteps(std::int64_t steps);

  /// As the last batch told; the engine may be ahead of it by one frame.
  RunState state() const { return state_; }
  QString detail() const { return detail_; }
  std::filesystem::path runDir() const { return run_dir_; }
  bool attached() const;
  /// Events of the run followed that were left out because they came faster than they could be taken; its folder has
  /// them all.
  std::int64_t dropped() const;
  /// False while a run is followed that can only be watched.
  bool controls() const;
  const BridgeOptions& options() const { return options_; }

 Q_SIGNALS:
  void batch(const accrue::ui::EventBatch& events);
  /// After the batch that carried the change.
  void stateChanged(accrue::RunState state, const QString& detail);

 private:
  void takeBatch(const EventBatch& events);
  void beginFollowing(const std::filesystem::path& run_dir);

  BridgeOptions options_;
  std::unique_ptr<EngineHost> host_;
  EventPump pump_;
  RunState state_ = RunState::idle;
  QString detail_;
  std::filesystem::path run_dir_;
};

}  // namespace accrue::ui
