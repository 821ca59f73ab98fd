// SPDX-License-Identifier: GPL-3.0-or-later
// RunControl: commands of the Run menu. It connects document, preflight, engine and library and holds the state that
// the window shows; it uses no widget.
#pragma once

#include <QObject>
#include <QString>
#include <filesystem>
#include <optional>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/record/branch.h"
#include "document/spec_document.h"
#include "held_phases.h"
#include "hosted_run.h"
#include "kit/job_runner.h"
#include "run_actions.h"
#include "runs/run_library.h"
#include "series/engine_bridge.h"
#include "series/rank_status.h"
#include "series/run_series.h"
#include "step_queue.h"

namespace accrue::ui {

class PreflightRunner;

/// Ways to continue from a run's checkpoint.
enum class GoOn { resume, branch };

/// Thread: GUI. One run at a time; the other run of a pair is a CompanionRun.
class RunControl : public HostedRun {
  Q_OBJECT

 public:
  RunControl(const BridgeOptions& options, SpecDocument* document, PreflightRunner* preflight, RunLibrary* library,
             QObject* parent = nullptr);
  ~RunControl() override;

  RunState state() const;
  /// The hosted or attached run, or the last one; nullptr before the first.
  RunSeries* run() const override { return run_; }
  /// State of that run's ranks.
  const RankTracker& ranks() const;
  const HeldPhases& held() const { return held_; }
  bool isLive() const { return is_live(state()); }
  /// Neither trains nor checks what is to be trained.
  bool isIdle() const { return !isLive() && state() != RunState::preflight; }
  /// None for a run that is attached to. One begins while a branch's checkpoint is copied.
  Hosting hosting() const override;
  bool attached() const { return bridge_.attached(); }
  /// Whether commands reach the run; false if it can only be watched.
  bool controls() const { return bridge_.controls(); }
  const BridgeOptions& bridgeOptions() const { return bridge_.options(); }
  /// The actions that the state's table and this run allow.
  RunActions actions() const;
  /// Number of fields that differ from the spec of the last run; empty before the first.
  std::optional<int> editsNotRun() const;
  /// Whether the last run trained another document, so that differences from its spec are not edits.
  bool lastRanAnother() const;
  /// Those fields, each with the run's value on the left, while that run is live: the edits are for the next one.
  std::vector<SpecDifference> editsWaiting() const;
  /// Exit status of the run that ended last; 0 before.
  int exitStatus() const { return exit_status_; }

  /// Checks the document and runs it if there is no error.
  void start();
  /// Does the same; the ranks hold before the first micro-step.
  void startPaused();
  /// Runs a plan made from the set-up `asked`, e.g. under another dialect. Returns false if it cannot begin;
  /// commandFailed() says why.
  bool startPlan(const RunPlan& plan, const SetUp& asked);
  /// The current set-up.
  SetUp setUp() const;
  /// Whether the user stopped the run that ended last.
  bool endedByUser() const { return ended_by_user_; }
  void togglePause();
  /// Steps to the end of the next phase or micro-step, or of the update. A running run is paused first; without a live
  /// run, the document is started, paused. A step during another one waits for its end.
  void stepPhase();
  void stepMicro();
  void stepUpdate();
  /// Number of waiting steps.
  int stepsWaiting() const { return steps_.waiting(); }
  /// During preflight: cancels. Later: saves at the end of the current update and ends the run; a second call while
  /// stopping kills it.
  void stop();
  /// Ends the run after the micro-step, without saving the work since the last checkpoint.
  void stopUnsaved();
  void saveAndEnd() override;
  void endUnsaved() override;
  void kill() override;
  bool wasKilled() const override { return killed_; }
  void checkpoint();
  /// Sets N from the next window on.
  void setSteps(std::int64_t steps);
  /// Resumes a stopped, failed or interrupted run from its newest good checkpoint. `libraries`: new locations of
  /// plug-in libraries of the run that have moved.
  void resume(const QString& folder, const std::vector<std::string>& libraries = {});
  /// Runs the document from that run's newest checkpoint as a new run; with that run's plug-in libraries, if none are
  /// chosen.
  void branch(const QString& folder);
  /// Follows a run that another process hosts.
  void attach(const QString& folder);

 Q_SIGNALS:
  /// Numbers or state changed; at most once per frame.
  void changed();
  void stateChanged(accrue::RunState state);
  /// A run begins here, before its first event.
  void runBegun(accrue::ui::RunSeries* run);
  /// An earlier run is resumed or followed here: the document may differ from it.
  void joined(accrue::ui::RunSeries* run);
  /// Run was requested, but the spec has errors.
  void refused(const std::vector<accrue::Finding>& findings);
  /// A branch begins with warnings.
  void warned(const std::vector<accrue::Finding>& findings);
  /// Emitted after commandFailed(): a plug-in library of the run is gone or changed. The user can give its new
  /// location.
  void librariesMissed(const QString& folder, const std::vector<accrue::PluginRecord>& recorded,
                       const accrue::Error& error, accrue::ui::GoOn wanted);
  /// A command could not be carried out.
  void commandFailed(const accrue::Error& error);
  /// The run has ended, and all its events were taken.
  void ended(accrue::ui::RunSeries* run, int exit_status);

 private:
  struct BranchFrom {
    Result<BranchPoint> point;
    Result<void> unchanged;  ///< result of the check of its libraries
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
  std::int64_t dropped_before_ = 0;         ///< events dropped before the run was followed here
  std::optional<SetUp> last_;               ///< that was trained
  QString resume_pending_;                  ///< waits for its history, or for the check of its libraries
  std::vector<std::string> moved_;          ///< new locations of that run's libraries
  QString branch_pending_;                  ///< folder whose branch point is being read
  std::optional<BranchPoint> branch_from_;  ///< of the document being checked
  quint64 check_ = 0;                       ///< counts the checks, to recognise one that was stopped
  bool checking_ = false;
  bool starts_paused_ = false;  ///< option of the document being checked
  bool comparing_ = false;      ///< a branch is being compared with its run, in the background
  bool copying_ = false;        ///< a branch's checkpoint is being copied, in the background
  bool kill_when_copied_ = false;
  bool stop_asked_ = false;
  bool ended_by_user_ = false;
  bool killed_ = false;
  bool over_told_ = true;
  int exit_status_ = 0;
  JobRunner jobs_;
};

}  // namespace accrue::ui
