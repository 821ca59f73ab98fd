// SPDX-License-Identifier: GPL-3.0-or-later
// RunReport: a run's facts other than measurements: its origin, state, problems, checks against one batch, and outcome.
#pragma once

#include <QString>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "accrue/run/events/run_event.h"
#include "accrue/run/events/run_state.h"
#include "exactness_lamp.h"

namespace accrue {
struct RunSummary;
}

namespace accrue::ui {

struct RunProblem {
  bool fatal = false;  ///< a rank failed, not a warning
  std::int64_t rank = -1;
  QString className;
  QString message;
  QString whatToDo;
  QString phase;
  QString logTail;
  int signal = 0;
  std::int64_t update = 0;
  std::int64_t microStep = 0;
};

struct RunOutcome {
  QString outcome;  ///< finished, stopped, failed, interrupted; empty while the run continues
  QString reason;
  QString weightsSha256;
  std::int64_t updates = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();
  double seconds = 0.0;
};

/// Thread: GUI.
class RunReport {
 public:
  static constexpr std::size_t mostProblems = 100;

  /// Takes the facts of a run folder's summary, except the state.
  void recall(const accrue::RunSummary& summary);
  /// The worst check of a run whose events are not read (yet).
  void recallChecks(const std::optional<accrue::ExactnessCheck>& worst) { lamp_.recall(worst); }
  void take(const accrue::RunEvent& event);
  /// Clears everything except the run's origin and state.
  void clear();

  accrue::RunState state() const { return state_; }
  QString stateDetail() const { return stateDetail_; }
  /// Returns false if nothing changed.
  bool setState(accrue::RunState state, const QString& detail);
  /// Whether events changed it since the last call.
  bool takeStateMoved() { return std::exchange(stateMoved_, false); }
  /// The state of a rank while the run is paused.
  const std::optional<accrue::Held>& held() const { return held_; }

  /// UTC, as text that sorts; empty if not known.
  QString startedAt() const { return startedAt_; }
  void setStartedAt(const QString& utc) { startedAt_ = utc; }
  /// Id of the run whose checkpoint this one began with; empty if it began anew.
  QString branchedFrom() const { return branchedFrom_; }
  /// Update of that checkpoint; 0 = not known.
  std::int64_t branchUpdate() const { return branchUpdate_; }
  /// Update of the newest checkpoint; 0 = none.
  std::int64_t checkpointUpdate() const { return checkpointUpdate_; }

  const ExactnessLamp& lamp() const { return lamp_; }
  const RunOutcome& outcome() const { return outcome_; }
  /// The newest mostProblems; of failures at least the last.
  const std::vector<RunProblem>& problems() const { return problems_; }
  /// All of them, kept or not.
  std::size_t problemCount() const { return problemCount_; }

 private:
  void takeStarted(const accrue::RunStarted& body);
  void takeState(const accrue::StateChanged& body);
  void takeProblem(RunProblem problem);
  void takeFinished(const accrue::RunFinished& body);

  QString startedAt_;
  QString branchedFrom_;
  std::int64_t branchUpdate_ = 0;
  std::int64_t checkpointUpdate_ = 0;
  accrue::RunState state_ = accrue::RunState::idle;
  QString stateDetail_;
  bool stateMoved_ = false;
  std::optional<accrue::Held> held_;
  ExactnessLamp lamp_;
  RunOutcome outcome_;
  std::vector<RunProblem> problems_;
  std::size_t problemCount_ = 0;
};

}  // namespace accrue::ui
