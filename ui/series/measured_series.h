// SPDX-License-Identifier: GPL-3.0-or-later
// MeasuredSeries: the measurements of a run as points. Each update is a point; MicroStepJoin merges all replicas'
// reports of a micro-step into one. A SeriesStore keeps each point with its positions on every clock.
#pragma once

#include <QString>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "accrue/run/events/run_event.h"
#include "kit/clock.h"
#include "points/metric.h"
#include "points/micro_step_join.h"
#include "points/series_store.h"
#include "points/sync_timeline.h"

namespace accrue {
struct RunSummary;
}

namespace accrue::ui {

/// The newest value of each measurement; NaN or 0 before the first.
struct LastValues {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();
  std::int64_t update = 0;
  std::int64_t plannedUpdates = 0;
  std::int64_t microStep = 0;       ///< number of the newest micro-step, from 1; not a sum over ranks
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
  double unpausedSeconds = 0.0;  ///< without pauses; forecasts use it
  std::int64_t memoryBytes = 0;  ///< resident memory of all ranks together
  std::int64_t wireBytes = 0;    ///< sent by all ranks
  std::int64_t collectives = 0;  ///< of one rank
};

/// Memory that a rank reported: of its device, or resident memory if it computes on the CPU.
struct RankMemory {
  ClockTable clocks;
  SeriesStore mebibytes{clocks};
};

/// An optional measurement, at the updates that have it.
struct UpdateSeries {
  ClockTable clocks;
  SeriesStore values{clocks};
  void append(const ClockPoint& at, double value);
  /// Drops values after that update.
  void rewindTo(double update);
};
/// The parts of a loss, by name.
using PartSeries = std::map<QString, std::unique_ptr<UpdateSeries>>;

/// Thread: GUI.
class MeasuredSeries {
 public:
  void setPlannedUpdates(std::int64_t updates) { last_.plannedUpdates = updates; }
  /// Totals of a run whose events are not read (yet).
  void recall(const accrue::RunSummary& summary);

  /// Micro-steps become points only in takeJoined().
  void take(const accrue::RunEvent& event);
  void takeJoined();
  /// Drops everything after a checkpoint from which the run continues: `position` micro-steps into the window after
  /// `update`.
  void rewindTo(std::int64_t update, std::int64_t position);
  /// Clears all values. The parts of the losses and the scalars remain as empty series, because a table may show them.
  void clear();

  MicroStepJoin& join() { return join_; }
  SyncTimeline& timeline() { return timeline_; }
  const SyncTimeline& timeline() const { return timeline_; }

  const LastValues& last() const { return last_; }
  /// Samples per second over all ranks, from the start to the last update; pauses do not count.
  double meanPace() const;
  /// Empty if nothing was measured.
  const SeriesStore& series(Metric metric) const;
  /// Terms of the loss, of updates and of evaluations.
  const PartSeries& lossParts() const { return lossParts_; }
  const PartSeries& evaluationParts() const { return evaluationParts_; }
  /// Additional scalars of a program, of updates and of evaluations.
  const PartSeries& scalars() const { return scalars_; }
  const PartSeries& evaluationScalars() const { return evaluationScalars_; }
  /// The loss scale at skipped updates; 0 if losses are not scaled.
  const SeriesStore& skippedUpdates() const { return skippedUpdates_.values; }
  /// Recorded weights, one series per weight.
  const std::vector<std::unique_ptr<SeriesStore>>& weights() const { return weights_; }
  /// By rank.
  const std::map<std::int64_t, std::unique_ptr<RankMemory>>& memory() const { return memory_; }
  /// The positions of the updates.
  const ClockTable& updateClocks() const { return updateClocks_; }
  /// The newest position on a clock; 0 before the first point.
  double latest(Clock clock) const;

 private:
  /// Total pause of a run from its start to an update.
  struct PausedUntil {
    std::size_t update = 0;  ///< place in the clocks of updates
    double seconds = 0.0;
  };

  void takeUpdate(const accrue::RunEvent& event, const accrue::Update& body);
  void takeMeasured(const ClockPoint& at, const accrue::Update& body);
  void takeEvaluation(const accrue::Evaluation& body);
  void takeGauge(const accrue::RunEvent& event, const accrue::Gauge& body);
  void takeState(const accrue::RunEvent& event, const accrue::StateChanged& body);
  void settleTimeOffset(double rawSeconds);
  void takePause();
  double pausedBefore(std::size_t update) const;
  void measurePace();
  void truncate(std::size_t updates, std::size_t microSteps, double keptUpdate);

  LastValues last_;
  std::map<std::int64_t, accrue::Gauge> gauges_;

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

  bool offsetPending_ = false;
  double timeOffset_ = 0.0;
  double keptSeconds_ = 0.0;
  std::vector<PausedUntil> pauses_;            ///< of the updates during which the run was paused
  std::optional<std::int64_t> pausedSinceNs_;  ///< while it is
  double pausedSinceUpdate_ = 0.0;             ///< seconds, in pauses that ended after the newest update
};

}  // namespace accrue::ui
