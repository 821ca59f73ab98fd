// SPDX-License-Identifier: GPL-3.0-or-later
// MicroStepJoin: makes points of the loss curve from the micro-steps of all replicas. One rank of each replica reports
// the mean loss over its items; a point is the mean over the items of all replicas. It is complete once all have
// reported. If too many later micro-steps wait for it, it is emitted without the slow replica.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "accrue/run/events/run_event.h"
#include "kit/clock.h"

namespace accrue::ui {

struct JoinedMicroStep {
  std::int64_t microStep = 0;
  double loss = 0.0;  ///< mean over the items of all ranks; noValue if there are none
  ClockPoint at;
  std::int64_t windowPosition = 0;  ///< from 1
  std::int64_t windowSize = 0;
};

/// Thread: GUI.
class MicroStepJoin {
 public:
  /// Sets the batches of an epoch for the epoch clock. 0: unknown; the clock then advances only with updates.
  void setEpochLength(std::int64_t batches) { epochLength_ = batches; }
  /// Sets the planned number of ranks whose losses make a point: one per replica. If addRank() names more, it waits for
  /// those.
  void expectRanks(std::int64_t count);
  /// Adds a rank. Ranks with the same samples as another (tensor axis, pipeline stages without the loss) are ignored.
  void addRank(std::int64_t rank, bool reportsLoss);
  void take(std::int64_t rank, const accrue::MicroSteps& body);
  /// Takes the exact clock positions of an update, from which later points continue.
  void takeUpdate(const accrue::Update& body);
  /// Marks the end of the events: emits the waiting points.
  void flush();
  /// Restarts after an update, because the run was resumed from its checkpoint.
  void rewind(const ClockPoint& at);
  void reset();

  /// Seconds to add to the ranks' times: the duration of a resumed run before its resume.
  void setTimeOffset(double seconds) { timeOffset_ = seconds; }

  /// Returns the points completed since the last call, in order.
  std::vector<JoinedMicroStep> takeJoined();

  /// Maximum number of points that wait for a slower rank; beyond it the oldest is emitted incomplete.
  static constexpr std::size_t patience = 1024;

 private:
  struct Partial {
    std::int64_t update = 0;
    std::int64_t position = 0;
    std::int64_t size = 0;
    std::int64_t epoch = 0;
    std::int64_t batch = 0;
    double lossSum = 0.0;
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
  std::map<std::int64_t, ClockPoint> anchors_;  // by the micro-step of the boundary
  std::vector<JoinedMicroStep> ready_;
  ClockPoint last_;
  std::int64_t emitted_ = 0;  // micro-step of the newest point
  double timeOffset_ = 0.0;
};

}  // namespace accrue::ui
