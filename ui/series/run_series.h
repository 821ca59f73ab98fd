// SPDX-License-Identifier: GPL-3.0-or-later
// RunSeries: everything the studio knows about one run, live or from disk: its names, its spec and plan, what it
// measured (MeasuredSeries) and what it says of itself (RunReport). append() takes a batch of events to all of them,
// and tells the views once.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "accrue/run/events/run_event.h"
#include "accrue/run/events/run_state.h"
#include "accrue/run/plan/run_plan.h"
#include "accrue/run/record/plan_check.h"
#include "kit/job_runner.h"
#include "measured_series.h"
#include "plan_outline.h"
#include "rank_status.h"
#include "run_report.h"

namespace accrue {
struct RunSummary;
}

namespace accrue::ui {

/// Whether a run is drawn. It is the run's own, so that neither a selection nor a filter changes it.
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
  /// UTC, as text that sorts; empty if not known.
  QString startedAt() const { return report_.startedAt(); }
  void setStartedAt(const QString& utc) { report_.setStartedAt(utc); }
  /// Id of the run whose checkpoint this one began with; empty if it began anew.
  QString branchedFrom() const { return report_.branchedFrom(); }
  /// Update of that checkpoint; 0 = not known.
  std::int64_t branchUpdate() const { return report_.branchUpdate(); }
  /// Update of the newest checkpoint that was reported; 0 = none.
  std::int64_t checkpointUpdate() const { return report_.checkpointUpdate(); }
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

  /// The result of the checks against one batch.
  const ExactnessLamp& lamp() const { return report_.lamp(); }

  accrue::RunState state() const { return report_.state(); }
  QString stateDetail() const { return report_.stateDetail(); }
  /// The state of a rank while the run is paused.
  const std::optional<accrue::Held>& held() const { return report_.held(); }
  void setState(accrue::RunState state, const QString& detail = {});
  bool isLive() const { return accrue::is_live(state()); }

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

  const LastValues& last() const { return series_.last(); }
  /// Samples per second over all ranks: the current rate while the run is live, then the mean without pauses.
  double pace() const { return isLive() ? last().samplesPerSecond : series_.meanPace(); }
  const RunOutcome& outcome() const { return report_.outcome(); }
  /// The newest; of failures at least the last.
  const std::vector<RunProblem>& problems() const { return report_.problems(); }
  /// All of them, kept or not.
  std::size_t problemCount() const { return report_.problemCount(); }
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

  /// The series of a metric; never null, empty if nothing was measured.
  const SeriesStore& series(Metric metric) const { return series_.series(metric); }
  /// Terms of the loss, if known: of updates and of evaluations.
  const PartSeries& lossParts() const { return series_.lossParts(); }
  const PartSeries& evaluationParts() const { return series_.evaluationParts(); }
  /// Additional scalars of a program, by name: of updates and of evaluations.
  const PartSeries& scalars() const { return series_.scalars(); }
  const PartSeries& evaluationScalars() const { return series_.evaluationScalars(); }
  /// The loss scale at updates skipped because something was not finite; 0 if losses are not scaled.
  const SeriesStore& skippedUpdates() const { return series_.skippedUpdates(); }
  /// Recorded weights, one series per weight (run.record_weights).
  const std::vector<std::unique_ptr<SeriesStore>>& weights() const { return series_.weights(); }
  /// By rank.
  const std::map<std::int64_t, std::unique_ptr<RankMemory>>& memory() const { return series_.memory(); }
  const SyncTimeline& timeline() const { return series_.timeline(); }
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
  double latest(Clock clock) const { return series_.latest(clock); }

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
  void takeReady(std::int64_t rank, const accrue::RankReady& body);
  void takeWindow();
  void resetTracker();
  void takeOutline(PlanOutline outline);

  QString id_;
  QString name_;
  RunNotes notes_;
  QString folder_;
  int colorIndex_ = 0;
  Shown shown_ = Shown::no;
  std::optional<accrue::RunSpec> spec_;
  std::optional<accrue::RunPlan> plan_;
  std::int64_t plannedSteps_ = 0;
  std::int64_t plannedMicroBatch_ = 0;
  std::int64_t steps_ = 0;  ///< N as it was set last; 0 = never

  MeasuredSeries series_;
  RunReport report_;
  RankTracker tracker_;
  std::map<std::int64_t, accrue::Measured> counted_;  ///< by rank
  std::vector<accrue::PlanFigure> summaryCheck_;      ///< of a run whose events are not read
  std::map<std::int64_t, accrue::GridCoordinate> places_;

  std::vector<PlannedPoint> planned_;
  std::shared_ptr<std::atomic<bool>> outlineCancelled_ = std::make_shared<std::atomic<bool>>(false);

  std::int64_t eventsTaken_ = 0;
  std::int64_t tracesNotDrawn_ = 0;
  std::uint64_t revision_ = 0;
  JobRunner jobs_;  ///< last, so that its jobs end before the members they report to
};

}  // namespace accrue::ui
