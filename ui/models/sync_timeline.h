// SPDX-License-Identifier: GPL-3.0-or-later
// SyncTimeline: what each rank did and when, from its own reports: spans of forward, backward and optimizer steps, and
// communication with its axis and bytes. Times are seconds from the run's origin; time between spans is waiting.
#pragma once

#include <QString>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "accrue/run/rank_grid.h"
#include "accrue/run/run_event.h"

namespace accrue::ui {

/// One operation: forward, backward or optimizer step.
struct ComputeSpan {
  double begin = 0.0;
  float seconds = 0.0F;
  std::int32_t chunk = 0;
  std::int64_t microStep = 0;
  double end() const { return begin + static_cast<double>(seconds); }
};

/// Where a micro-step begins on a lane: at its first operation.
struct MicroPlace {
  double begin = 0.0;
  std::int64_t microStep = 0;
};

struct SyncSpan {
  double begin = 0.0;
  double end = 0.0;
  /// When the last rank of the group had begun it: before, this rank waits; from then on it transfers. The end until
  /// all of them have reported.
  double transfer = 0.0;
  std::int64_t update = 0;
  std::int64_t microStep = 0;
  std::int64_t bytes = 0;
  std::uint8_t axis = 0;  ///< index into SyncTimeline::axes()
  std::uint8_t op = 0;    ///< index into SyncTimeline::ops()
};

/// How time on a lane was spent, in seconds.
struct LaneShare {
  double forward = 0.0;
  double backward = 0.0;
  double collective = 0.0;  ///< transfers, without the waiting before them
  double step = 0.0;
};

/// When something was under way: disjoint intervals in order, however the spans that were added overlap.
class BusyTime {
 public:
  void add(double begin, double end);
  /// Seconds before a moment: O(log n).
  double spent(double time) const;
  /// Where the first interval that reaches a moment or lies after it begins; that moment if there is none.
  double beginReaching(double time) const;
  double end() const { return intervals_.empty() ? 0.0 : intervals_.back().end; }

 private:
  struct Interval {
    double begin = 0.0;
    double end = 0.0;
  };
  std::vector<Interval> intervals_;
  std::vector<double> before_;  // prefix sums of their lengths
};

/// When a rank transferred over one axis.
struct AxisUse {
  std::uint8_t axis = 0;  ///< index into SyncTimeline::axes()
  BusyTime time;
};

/// One rank's spans, each kind ordered by begin.
class Lane {
 public:
  std::vector<MicroPlace> micro;  ///< by micro-step: a pipeline's forwards keep that order
  std::vector<ComputeSpan> forward;
  std::vector<ComputeSpan> backward;
  std::vector<ComputeSpan> step;
  std::vector<SyncSpan> sync;  ///< these may overlap: some go on while the rank computes
  std::vector<AxisUse> uses;   ///< the same communication by axis

  double begin() const;
  double end() const;
  /// Time spent per kind before a moment, by prefix sums: O(log n). The difference between two moments is the time
  /// spent between them.
  LaneShare spent(double time) const;
  /// Largest payload of a collective that begins in [from, to).
  std::int64_t largestBytes(double from, double to) const;
  /// The collectives that end at or after a moment begin here or later.
  std::vector<SyncSpan>::const_iterator syncReaching(double time) const;

  void push(accrue::ComputeKind kind, const ComputeSpan& span);
  /// In any order: one that overlaps is reported when it is waited for, after others that began later.
  void pushSync(const SyncSpan& span);
  /// All ranks of its group have begun this one, the last of them at `last`.
  void meet(const SyncSpan& span, double last);
  /// Keeps the spans of micro-steps up to this one.
  void truncate(std::int64_t microStep);

 private:
  void count(const SyncSpan& span);

  std::vector<double> forwardBefore_;  // prefix sums, one entry a span
  std::vector<double> backwardBefore_;
  std::vector<double> stepBefore_;
  BusyTime communication_;  // over all axes, with the waiting
  BusyTime transfers_;      // without
};

/// Thread: GUI.
class SyncTimeline {
 public:
  void take(std::int64_t rank, const accrue::Operations& body);
  void take(std::int64_t rank, const accrue::Sync& body);
  void clear();
  /// Drops everything after a micro-step: the run was resumed there.
  void rewind(std::int64_t microStep);
  /// Seconds to add to the ranks' times: the duration of a resumed run before its resume.
  void setTimeOffset(double seconds) { offset_ = seconds; }
  /// Which ranks take part in a collective together. Without it none is known to wait for another.
  void setGrid(const accrue::RankGrid& grid) { grid_ = grid; }

  bool empty() const { return lanes_.empty(); }
  const std::map<std::int64_t, Lane>& lanes() const { return lanes_; }
  const std::vector<QString>& axes() const { return axes_; }
  /// Indices into axes() in the order in which they are shown: data, tensor, pipeline, then the combined ones.
  std::vector<std::uint8_t> shownAxes() const;
  const std::vector<QString>& ops() const { return ops_; }

  double begin() const;
  double end() const;
  /// Calls of a group, each once a rank.
  std::int64_t collectives() const { return collectives_; }
  /// From one rank to another, each once.
  std::int64_t messages() const { return messages_; }
  /// Payload over all ranks, of collectives and on both sides of messages.
  std::int64_t bytes() const { return bytes_; }
  std::int64_t largestBytes() const { return largestBytes_; }
  /// Micro-steps of a rank in which gradients were reduced over data.
  std::int64_t reducingMicroSteps() const;
  /// Payload over all ranks if gradients had been reduced in so many micro-steps.
  std::int64_t bytesIfReduced(std::int64_t microSteps) const;

 private:
  /// Micro-step, first rank of the group, axis, op, and which of these calls.
  using Call = std::tuple<std::int64_t, std::int64_t, std::uint8_t, std::uint8_t, std::int64_t>;
  /// The ranks' spans of a call that others of the group have yet to report.
  using Begun = std::vector<std::pair<std::int64_t, SyncSpan>>;

  accrue::RankList groupOf(std::int64_t rank, const SyncSpan& span) const;
  bool isMessage(const SyncSpan& span) const;
  void join(std::int64_t rank, const accrue::RankList& group, const SyncSpan& span);
  double seconds(std::int64_t ns) const { return static_cast<double>(ns) * 1e-9 + offset_; }
  void count(std::int64_t rank, const SyncSpan& span);
  std::uint8_t nameIndex(std::vector<QString>& names, const std::string& name);

  std::map<std::int64_t, Lane> lanes_;
  std::vector<QString> axes_;
  std::vector<QString> ops_;
  accrue::RankGrid grid_;
  std::map<Call, Begun> open_;
  /// Calls so far of a rank's newest micro-step, by rank, axis and op.
  std::map<std::tuple<std::int64_t, std::uint8_t, std::uint8_t>, std::pair<std::int64_t, std::int64_t>> calls_;
  /// Of each rank: the newest micro-step in which it reduced gradients, and how many.
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> reducing_;
  std::int64_t reducedBytes_ = 0;
  double offset_ = 0.0;
  std::int64_t collectives_ = 0;
  std::int64_t messages_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t largestBytes_ = 0;
};

}  // namespace accrue::ui
