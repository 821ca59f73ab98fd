// SPDX-License-Identifier: GPL-3.0-or-later
// RunSeries: the studio's data of one run, live or from disk: its spec and plan, its progress, and its measured series
// with their positions on every clock. From event to point: append() takes a batch of events; MicroStepJoin makes one
// point of all replicas' reports of a micro-step (an update is a point itself); a SeriesStore keeps the point with its
// clocks; a plot draws it through column_reducer.h.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "accrue/run/plan_check.h"
#include "accrue/run/run_event.h"
#include "accrue/run/run_plan.h"
#include "accrue/run/run_state.h"
#include "exactness_lamp.h"
#include "kit/clock.h"
#include "kit/job_runner.h"
#include "metric.h"
#include "micro_step_join.h"
#include "plan_outline.h"
#include "rank_status.h"
#include "series_store.h"
#include "sync_timeline.h"

namespace accrue {
struct RunSummary;
}

namespace accrue::ui {

/// Newest value of each measurement; NaN or 0 before the first.
struct LastValues {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();
  std::int64_t update = 0;
  std::int64_t plannedUpdates = 0;
  std::int64_t microStep = 0;
  std::int64_t windowPosition = 0;  ///< of the newest micro-step in its window, from 1; 0 before the first
  std::int64_t windowSize = 0;
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  double epoch = 0.0;
  double loss = none;  ///< of the last update
  double microLoss = none;
  double evaluationLoss = none;
  double learningRate = none;
  double gradNorm = none;
  double samplesPerSecond = none;  ///< over all ranks
  double tokensPerSecond = none;   ///< over all ranks
  double seconds = 0.0;
  double unpausedSeconds = 0.0;  ///< of them, without pauses; the basis of forecasts
  std::int64_t memoryBytes = 0;  ///< resident memory of all ranks together
  std::int64_t wireBytes = 0;    ///< sent by all ranks
  std::int64_t collectives = 0;  ///< of one rank
};

/// A rank's memory reports: of its device, or resident memory if it computes on the CPU.
struct RankMemory {
  ClockTable clocks;
  SeriesStore mebibytes{clocks};
};

/// Optional measurements of an update, at the updates that have them.
struct UpdateSeries {
  ClockTable clocks;
  SeriesStore values{clocks};
  void append(const ClockPoint& at, double value);
  /// Keeps measurements up to that update.
  void rewindTo(double update);
};
/// Parts of a loss, by name.
using PartSeries = std::map<QString, std::unique_ptr<UpdateSeries>>;

struct RunProblem {
  bool fatal = false;  ///< a rank failed; not a warning
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

/// Total pause of a run, from its start to an update.
struct PausedUntil {
  std::size_t update = 0;  ///< index in the clocks of updates
  double seconds = 0.0;
};

/// Whether a run is drawn. It belongs to the run, so neither a selection nor a filter changes it.
enum class Shown {
  no,
  whileFocused,  ///< temporarily, until another run has the focus
  yes
};

/// A user's notes about a run; kept in the studio's data, never in the run's folder.
struct RunNotes {
  QString name;  ///< replaces the run's own name
  QString text;
  QStringList tags;
  bool starred = false;
  QString called{};  ///< name among runs of the same name; never changes once given
  bool operator==(const RunNotes&) const = default;
};

struct RunOutcome {
  QString outcome;  ///< finished, stopped, failed, interrupted; empty while the run is in progress
  QString reason;
  QString weightsSha256;
  std::int64_t updates = 0;
  double loss = LastValues::none;
  double seconds = 0.0;
};

/// Thread: GUI.
class RunSeries : public QObject {
  Q_OBJECT

 public:
  /// Number of colours; further indices repeat them with another dash pattern.
  static constexpr int colors = 8;
  /// colorIndex determines a colour, a dash pattern and a marker in every theme; -1 until the run is first shown.
  explicit RunSeries(QString id, int colorIndex, QObject* parent = nullptr);
  ~RunSeries() override;

  QString id() const { return id_; }
  /// Its displayed name: the given one, with a distinction if a table contains several of that name.
  QString name() const { return distinctName().isEmpty() ? givenName() : distinctName(); }
  /// Name from the user, the spec or the folder.
  QString givenName() const;
  QString folder() const { return folder_; }
  int colorIndex() const { return colorIndex_; }
  void setColorIndex(int index);
  Shown shown() const { return shown_; }
  void setShown(Shown shown);
  /// UTC, as sortable text; empty if unknown.
  QString startedAt() const { return startedAt_; }
  void setStartedAt(const QString& utc) { startedAt_ = utc; }
  /// Id of the run whose checkpoint this one started from; empty if there is none.
  QString branchedFrom() const { return branchedFrom_; }
  /// Update of that checkpoint; 0: unknown.
  std::int64_t branchUpdate() const { return branchUpdate_; }
  /// Update of the newest reported checkpoint; 0: none.
  std::int64_t checkpointUpdate() const { return checkpointUpdate_; }
  void setName(const QString& name);
  /// Set by the table that contains it; empty: the given name.
  QString distinctName() const { return notes_.called; }
  void setDistinctName(const QString& name);
  const RunNotes& notes() const { return notes_; }
  void setNotes(const RunNotes& notes);
  void setFolder(const QString& folder);

  const std::optional<accrue::RunSpec>& spec() const { return spec_; }
  const std::optional<accrue::RunPlan>& plan() const { return plan_; }
  void setSpec(const accrue::RunSpec& spec);
  /// Also sets the spec. Starts computing the planned LR curve and the window's arithmetic.
  void setPlan(const accrue::RunPlan& plan);
  /// Takes a run folder's summary, for a run whose events are not read.
  void setSummary(const accrue::RunSummary& summary);

  /// Result of the checks against one batch.
  const ExactnessLamp& lamp() const { return lamp_; }

  accrue::RunState state() const { return state_; }
  QString stateDetail() const { return stateDetail_; }
  /// State of a rank while the run is paused.
  const std::optional<accrue::Held>& held() const { return held_; }
  void setState(accrue::RunState state, const QString& detail = {});
  bool isLive() const { return accrue::is_live(state_); }

  /// Takes a batch of events, once per frame. Emits changed() once, and stateChanged() if the state changed.
  void append(const std::vector<accrue::RunEvent>& events);
  /// Clears all measured data (before a history is read again).
  void clear();
  /// Whether any events were taken.
  bool hasEvents() const { return eventsTaken_ > 0; }
  std::int64_t eventsTaken() const { return eventsTaken_; }
  /// Number of traces that arrived too fast; they are only in the run folder.
  std::int64_t tracesNotDrawn() const { return tracesNotDrawn_; }
  void setTracesNotDrawn(std::int64_t count);

  /// The plan's figures compared with the ranks' counts; empty before they are known.
  std::vector<accrue::PlanFigure> planCheck() const;

  const LastValues& last() const { return last_; }
  /// Samples per second over all ranks, without pauses: the current value while the run is live, then the mean.
  double pace() const;
  const RunOutcome& outcome() const { return outcome_; }
  /// The newest problems; always includes the last failure.
  const std::vector<RunProblem>& problems() const { return problems_; }
  static constexpr std::size_t mostProblems = 100;
  /// Number of all problems, kept or not.
  std::size_t problemCount() const { return problemCount_; }
  std::int64_t ranks() const;
  /// As planned, if a spec is known: N may follow from a global batch, and both from the memory of a rank. 0: unknown.
  std::int64_t plannedSteps() const { return plannedSteps_; }
  std::int64_t plannedMicroBatch() const { return plannedMicroBatch_; }
  /// The spec with these two values filled in.
  std::optional<accrue::RunSpec> plannedSpec() const;
  /// The current N; 0: unknown.
  std::int64_t steps() const;

  /// Progress in the open window: "2 of 4".
  QString windowText() const;
  /// Progress of the run: "update 120 of 300, micro-step 2 of 4".
  QString progressText() const;

  /// Series of a metric; never null, empty if nothing was measured.
  const SeriesStore& series(Metric metric) const;
  /// Parts of the loss, if known: of updates, and of evaluations.
  const PartSeries& lossParts() const { return lossParts_; }
  const PartSeries& evaluationParts() const { return evaluationParts_; }
  /// A program's other measurements, by name: of updates, and of evaluations.
  const PartSeries& scalars() const { return scalars_; }
  const PartSeries& evaluationScalars() const { return evaluationScalars_; }
  /// Loss scale at updates that were skipped because of a non-finite value; 0 if losses are not scaled.
  const SeriesStore& skippedUpdates() const { return skippedUpdates_.values; }
  /// Recorded weights, one series per weight (run.record_weights).
  const std::vector<std::unique_ptr<SeriesStore>>& weights() const { return weights_; }
  /// By rank.
  const std::map<std::int64_t, std::unique_ptr<RankMemory>>& memory() const { return memory_; }
  const SyncTimeline& timeline() const { return timeline_; }
  /// Contents of each rank's gradients.
  const RankTracker& tracker() const { return tracker_; }
  /// Grid coordinate of each rank that is or was ready.
  const std::map<std::int64_t, accrue::GridCoordinate>& places() const { return places_; }
  /// Planned learning rate, one point per update (fewer for very long plans); empty until it was computed in the
  /// background, which emits changed(). On wall and compute time the plan is scaled by the measured pace; empty before
  /// there is one.
  std::vector<std::pair<double, double>> plannedLearningRate(Clock clock) const;
  /// End of the plan on a clock, if known.
  std::optional<double> plannedEnd(Clock clock) const;
  /// The newest position on a clock; 0 before the first point.
  double latest(Clock clock) const;

  /// Grows with every change to drawn data; a plot compares it to decide whether to draw.
  std::uint64_t revision() const { return revision_; }

 Q_SIGNALS:
  void changed();
  void stateChanged();
  void shownChanged();
  /// Emitted when spec and plan become known or change.
  void specChanged();
  void givenNameChanged();
  /// Emitted before the run is destroyed, while it is complete: views that show it must let go.
  void leaving();

 private:
  void takeSpec(const accrue::RunSpec& spec);
  void take(const accrue::RunEvent& event);
  void takeStarted(const accrue::RunStarted& body);
  void takeUpdate(const accrue::RunEvent& event, const accrue::Update& body);
  void takeMeasured(const ClockPoint& at, const accrue::Update& body);
  void takeEvaluation(const accrue::Evaluation& body);
  void takeStepsChanged(const accrue::StepsChanged& body);
  void takeWindow();
  void takeGauge(const accrue::RunEvent& event, const accrue::Gauge& body);
  void takeState(const accrue::RunEvent& event, const accrue::StateChanged& body);
  void takeProblem(RunProblem problem);
  void takeFailure(const accrue::RunEvent& event, const accrue::RankFailed& body);
  void takeFinished(const accrue::RunFinished& body);
  void takeJoined();
  void rewindTo(std::int64_t update, std::int64_t position);
  void settleTimeOffset(double rawSeconds);
  void takePause();
  double pausedBefore(std::size_t update) const;
  void measurePace();
  void resetTracker();
  void takeOutline(PlanOutline outline);

  QString id_;
  QString name_;
  RunNotes notes_;
  QString folder_;
  QString startedAt_;
  QString branchedFrom_;
  std::int64_t branchUpdate_ = 0;
  std::int64_t checkpointUpdate_ = 0;
  int colorIndex_ = 0;
  Shown shown_ = Shown::no;
  std::optional<accrue::RunSpec> spec_;
  std::optional<accrue::RunPlan> plan_;
  std::int64_t plannedSteps_ = 0;
  std::int64_t plannedMicroBatch_ = 0;
  std::int64_t steps_ = 0;  ///< last set N; 0: never
  accrue::RunState state_ = accrue::RunState::idle;
  QString stateDetail_;
  std::optional<accrue::Held> held_;

  ExactnessLamp lamp_;
  LastValues last_;
  RunOutcome outcome_;
  std::vector<RunProblem> problems_;
  std::size_t problemCount_ = 0;
  std::map<std::int64_t, accrue::Gauge> gauges_;
  std::map<std::int64_t, accrue::Measured> measured_;
  std::vector<accrue::PlanFigure> summary_check_;  ///< of a run whose events are not read
  std::map<std::int64_t, accrue::GridCoordinate> places_;

  ClockTable microClocks_;
  ClockTable updateClocks_;
  ClockTable evaluationClocks_;
  SeriesStore microLoss_{microClocks_};
  SeriesStore updateLoss_{updateClocks_};
  SeriesStore evaluationLoss_{evaluationClocks_};
  UpdateSeries learningRate_;
  UpdateSeries gradNorm_;
  UpdateSeries samplesPerSecond_;
  UpdateSeries tokensPerSecond_;
  UpdateSeries lossScale_;
  UpdateSeries skippedUpdates_;
  UpdateSeries updateNorm_;
  UpdateSeries parameterNorm_;
  UpdateSeries gradientZeros_;
  const std::vector<UpdateSeries*> ofSomeUpdates_{&learningRate_,    &gradNorm_,      &samplesPerSecond_,
                                                  &tokensPerSecond_, &lossScale_,     &skippedUpdates_,
                                                  &updateNorm_,      &parameterNorm_, &gradientZeros_};
  PartSeries lossParts_;
  PartSeries evaluationParts_;
  PartSeries scalars_;
  PartSeries evaluationScalars_;
  std::vector<std::unique_ptr<SeriesStore>> weights_;
  std::map<std::int64_t, std::unique_ptr<RankMemory>> memory_;
  MicroStepJoin join_;
  SyncTimeline timeline_;
  RankTracker tracker_;

  std::vector<PlannedPoint> planned_;
  std::shared_ptr<std::atomic<bool>> outlineCancelled_ = std::make_shared<std::atomic<bool>>(false);

  std::int64_t eventsTaken_ = 0;
  std::int64_t tracesNotDrawn_ = 0;
  std::uint64_t revision_ = 0;
  bool stateMoved_ = false;
  bool offsetPending_ = false;
  double timeOffset_ = 0.0;
  double keptSeconds_ = 0.0;
  std::vector<PausedUntil> pauses_;            ///< for updates during which the run was paused
  std::optional<std::int64_t> pausedSinceNs_;  ///< set while it is paused
  double pausedSinceUpdate_ = 0.0;             ///< seconds of pauses that ended after the newest update
  JobRunner jobs_;                             ///< last, so that its jobs end before the members they report to
};

}  // namespace accrue::ui
