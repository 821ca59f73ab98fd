// SPDX-License-Identifier: GPL-3.0-or-later
// MicroStepJoin: brings the micro-steps of all ranks together. Each rank reports its own mean loss in its own batches;
// a point of the loss curve is the mean over the items of all ranks, and exists once all have reported (or the run has
// moved on without one).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "accrue/run/run_event.h"
#include "models/clock.h"

namespace accrue::ui {

struct JoinedMicroStep {
  std::int64_t microStep = 0;
  double loss = 0.0;  ///< mean over the items of all ranks
  ClockPoint at;
  std::int64_t windowPosition = 0;  ///< from 1
  std::int64_t windowSize = 0;
};

/// Thread: GUI.
class MicroStepJoin {
 public:
  /// Batches of an epoch, for the epoch clock; 0 = not known: it then moves with the updates only.
  void setEpochLength(std::int64_t batches) { epochLength_ = batches; }
  /// The ranks whose losses a point needs, from the plan; ranks that say they are ready are added.
  void expectRanks(std::int64_t count);
  /// Ranks that hold the same samples as another (tensor axis, pipeline stages without the loss) are left out.
  void addRank(std::int64_t rank, bool reportsLoss);
  void take(std::int64_t rank, const accrue::MicroSteps& body);
  /// The truth at an update: later points count on from here.
  void takeUpdate(const accrue::Update& body);
  /// No more will come: gives out what still waits.
  void flush();
  /// Starts over after an update of which a checkpoint was resumed.
  void rewind(const ClockPoint& at);
  void reset();

  /// Seconds to add to the ranks' times: what a resumed run had behind it.
  void setTimeOffset(double seconds) { timeOffset_ = seconds; }

  /// Points completed since the last call, in order.
  std::vector<JoinedMicroStep> takeJoined();

  /// Points that wait for a slower rank; beyond this many the oldest is given out with what came.
  static constexpr std::size_t patience = 1024;

 private:
  struct Partial {
    std::int64_t update = 0;
    std::int64_t position = 0;
    std::int64_t size = 0;
    std::int64_t epoch = 0;
    std::int64_t batch = 0;
    double lossSum = 0.0;
    double lossPlain = 0.0;
    std::int64_t items = 0;
    std::int64_t samples = 0;
    int count = 0;
    double end = 0.0;      // seconds, the slowest rank's
    double compute = 0.0;  // seconds, of the lowest rank
    std::int64_t lowestRank = -1;
  };
  void emitReady();
  void emitPoint(std::int64_t microStep, const Partial& partial);
  void place(JoinedMicroStep& point, const Partial& partial) const;
  void anchorTo(const ClockPoint& truth);
  std::size_t needed() const;

  std::int64_t epochLength_ = 0;
  std::int64_t expected_ = 1;
  std::set<std::int64_t> lossRanks_;
  std::set<std::int64_t> silentRanks_;

  std::map<std::int64_t, Partial> waiting_;
  std::map<std::int64_t, ClockPoint> anchors_;  // by boundary micro-step
  std::vector<JoinedMicroStep> ready_;
  ClockPoint last_;
  std::int64_t emitted_ = 0;  // micro-step of the newest point
  double timeOffset_ = 0.0;
};

}  // namespace accrue::ui
