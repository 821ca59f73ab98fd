// SPDX-License-Identifier: GPL-3.0-or-later
// RunControl: what the Run menu does. It connects document, preflight, engine and library and holds the state that the
// window shows; it uses no widget.
#pragma once

#include <QObject>
#include <QString>
#include <filesystem>
#include <optional>
#include <vector>

#include "accrue/run/branch.h"
#include "accrue/run/findings.h"
#include "accrue/run/result.h"
#include "accrue/run/spec_fields.h"
#include "held_phases.h"
#include "hosted_run.h"
#include "kit/job_runner.h"
#include "run_actions.h"
#include "runs/run_library.h"
#include "series/engine_bridge.h"
#include "series/rank_status.h"
#include "series/run_series.h"
#include "setup/spec_document.h"
#include "step_queue.h"

namespace accrue::ui {

class PreflightRunner;

/// How training goes on from a run's checkpoint.
enum class GoOn { resume, branch };

/// Thread: GUI. One run at a time; the other of a pair that trains together is a CompanionRun.
class RunControl : public HostedRun {
  Q_OBJECT

 public:
  RunControl(const BridgeOptions& options, SpecDocument* document, PreflightRunner* preflight, RunLibrary* library,
             QObject* parent = nullptr);
  ~RunControl() override;

  RunState state() const;
  /// The run that is hosted or attached, or the last one that was; nullptr before the first.
  RunSeries* run() const override { return run_; }
  /// Of that run.
  const RankTracker& ranks() const;
  const HeldPhases& held() const { return held_; }
  bool isLive() const { return is_live(state()); }
  /// Neither trains nor checks what is to be trained.
  bool isIdle() const { return !isLive() && state() != RunState::preflight; }
  /// None for a run that is attached to. One begins while a branch's checkpoint is copied.
  Hosting hosting() const override;
  bool attached() const { return bridge_.attached(); }
  /// False while the run can only be watched.
  bool controls() const { return bridge_.controls(); }
  const BridgeOptions& bridgeOptions() const { return bridge_.options(); }
  /// The actions that the state's table and this run allow.
  RunActions actions() const;
  /// Number of fields that differ from the spec of the last run; empty before the first.
  std::optional<int> editsNotRun() const;
  /// What the last run trained was another document: what differs from its spec are no edits.
  bool lastRanAnother() const;
  /// They, each with the run's value on the left, while that run is live: they wait for the next one.
  std::vector<SpecDifference> editsWaiting() const;
  /// Exit status of the run that ended last; 0 before.
  int exitStatus() const { return exit_status_; }

  /// Checks the document and runs it if there is no error.
  void start();
  /// The same; the ranks hold before the first micro-step.
  void startPaused();
  /// Runs a plan made from the set-up `asked`, e.g. under another dialect. False if it cannot begin; commandFailed()
  /// says why.
  bool startPlan(const RunPlan& plan, const SetUp& asked);
  /// The set-up as it is now.
  SetUp setUp() const;
  /// Whether the run that ended last was stopped by the user.
  bool endedByUser() const { return ended_by_user_; }
  void togglePause();
  /// To the end of the next phase or micro-step, or of the update. A running run is paused first; where none is live,
  /// the document is run, paused at its start. While a step is under way the next one waits for its end.
  void stepPhase();
  void stepMicro();
  void stepUpdate();
  /// How many steps wait.
  int stepsWaiting() const { return steps_.waiting(); }
  /// During preflight: cancels. Later: saves at the end of the current update and ends the run; called again while
  /// stopping, kills it.
  void stop();
  /// Ends the run after the micro-step; what was trained since the last checkpoint is lost.
  void stopUnsaved();
  void saveAndEnd() override;
  void endUnsaved() override;
  void kill() override;
  bool wasKilled() const override { return killed_; }
  void checkpoint();
  /// Sets N from the next window on.
  void setSteps(std::int64_t steps);
  /// Continues a stopped, failed or interrupted run from its newest good checkpoint. `libraries`: where plug-in
  /// libraries of the run that have moved lie now.
  void resume(const QString& folder, const std::vector<std::string>& libraries = {});
  /// Runs the document from that run's newest checkpoint, as a run of its own; with that run's plug-in libraries, if
  /// none are chosen.
  void branch(const QString& folder);
  /// Follows a run that another process hosts.
  void attach(const QString& folder);

 Q_SIGNALS:
  /// Numbers or state changed; at most once a frame.
  void changed();
  void stateChanged(accrue::RunState state);
  /// A run begins here, before its first event.
  void runBegun(accrue::ui::RunSeries* run);
  /// A run that began before goes on here, or is followed here: the document may be of another one.
  void joined(accrue::ui::RunSeries* run);
  /// Run was pressed and the spec has errors.
  void refused(const std::vector<accrue::Finding>& findings);
  /// A branch begins although something about it deserves a word.
  void warned(const std::vector<accrue::Finding>& findings);
  /// After commandFailed(): a plug-in library of the run is gone, or another. The user can say where it lies now.
  void librariesMissed(const QString& folder, const std::vector<accrue::PluginRecord>& recorded,
                       const accrue::Error& error, accrue::ui::GoOn wanted);
  /// A command could not be carried out.
  void commandFailed(const accrue::Error& error);
  /// The run is over and all its events have been taken.
  void ended(accrue::ui::RunSeries* run, int exit_status);

 private:
  struct BranchFrom {
    Result<BranchPoint> point;
    Result<void> unchanged;  ///< its libraries
  };
  void step(void (EngineBridge::*unit)());
  void beginCheck();
  void endCheck();
  void startChecked();
  void compareBranch(const RunPlan& plan);
  void startBranch(const RunPlan& plan, const SetUp& asked);
  bool beginStarted(const Result<std::filesystem::path>& started, const RunPlan& plan, const SetUp& asked);
  void forgetOthersSpec(const QString& folder);
  void begin(const std::filesystem::path& dir, const std::optional<RunPlan>& plan, RunLibrary::Past past);
  void showStopping();
  void resumeLoaded(const QString& folder);
  void resumeWithLibraries(const QString& folder);
  SetUp branchSetUp() const;
  void takeBranchPoint(const QString& folder, BranchFrom from);
  void takeBatch(const EventBatch& events);
  void takeState();

  SpecDocument* document_;
  PreflightRunner* preflight_;
  RunLibrary* library_;
  EngineBridge bridge_;
  RunSeries* run_ = nullptr;
  HeldPhases held_;
  StepQueue steps_;
  std::int64_t dropped_before_ = 0;         ///< events left out earlier in the run, before it was followed here
  std::optional<SetUp> last_;               ///< that was trained
  QString resume_pending_;                  ///< waits for its history, or for its libraries to be looked at
  std::vector<std::string> moved_;          ///< libraries of that run, where they lie now
  QString branch_pending_;                  ///< folder whose branch point is being read
  std::optional<BranchPoint> branch_from_;  ///< of what is being checked
  quint64 check_ = 0;                       ///< counts the checks, so that one that was stopped is known
  bool checking_ = false;
  bool starts_paused_ = false;  ///< what is being checked
  bool comparing_ = false;      ///< a branch with its run, in the background
  bool copying_ = false;        ///< a branch's checkpoint, in the background
  bool kill_when_copied_ = false;
  bool stop_asked_ = false;
  bool ended_by_user_ = false;
  bool killed_ = false;
  bool over_told_ = true;
  int exit_status_ = 0;
  JobRunner jobs_;
};

}  // namespace accrue::ui
