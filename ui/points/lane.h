// SPDX-License-Identifier: GPL-3.0-or-later
// Lane: operations of one rank over time. The newest micro-steps keep every span. Older ones keep only the time spent
// per kind, at some moments, so a run of any length needs a bounded amount of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "accrue/run/events/run_event.h"

namespace accrue::ui {

/// One operation: forward, backward or optimizer step.
struct ComputeSpan {
  double begin = 0.0;
  float seconds = 0.0F;
  std::int32_t chunk = 0;
  std::int64_t microStep = 0;
  double end() const { return begin + static_cast<double>(seconds); }
};

/// Begin of micro-steps on a lane: at the first operation of the first. One micro-step each, or several old ones.
struct MicroPlace {
  double begin = 0.0;
  std::int64_t microStep = 0;  ///< the first
  std::int64_t count = 1;
  std::int64_t last() const { return microStep + count - 1; }
};

struct SyncSpan {
  double begin = 0.0;
  double end = 0.0;
  /// Time when the last rank of the group had begun it: before it this rank waits, after it the rank transfers. Equal
  /// to the end until all have reported.
  double transfer = 0.0;
  std::int64_t update = 0;
  std::int64_t microStep = 0;
  std::int64_t bytes = 0;
  std::uint8_t axis = 0;  ///< index into SyncTimeline::axes()
  std::uint8_t op = 0;    ///< index into SyncTimeline::ops()
  accrue::CollectivePurpose purpose = accrue::CollectivePurpose::unknown;
  bool reducesGradients = false;  ///< over data
  /// Whether it trains no weights: the ranks agree on counts and norms, check, evaluate or save.
  bool isAside() const {
    using enum accrue::CollectivePurpose;
    return purpose == agreement || purpose == check || purpose == evaluation || purpose == checkpoint;
  }
};

/// Seconds spent on a lane, by kind.
struct LaneShare {
  double forward = 0.0;
  double backward = 0.0;
  double collective = 0.0;  ///< transfers that train the weights, without the preceding waits
  double aside = 0.0;       ///< other transfers, also without waits: see SyncSpan::isAside
  double step = 0.0;
};

/// Time spent before certain moments, for a past without spans; it is interpolated evenly between two moments.
class PastTime {
 public:
  /// End of the past; later times do not belong to it.
  double end() const { return end_.time; }
  double total() const { return end_.spent; }
  double spent(double time) const;
  /// Adds a moment; moments ascend from the past's end.
  void add(double time, double spent) { samples_.push_back({time, spent}); }
  void endAt(double time, double spent) { end_ = {time, spent}; }
  /// Forgets every second moment.
  void thin();
  /// Forgets everything after a time within the past.
  void truncate(double time);

 private:
  struct Sample {
    double time = 0.0;
    double spent = 0.0;
  };
  std::vector<Sample> samples_;
  Sample end_;
};

/// Operations of one kind, in order of begin.
class SpanTrack {
 public:
  using Spans = std::vector<ComputeSpan>;
  bool empty() const { return spans_.empty(); }
  std::size_t size() const { return spans_.size(); }
  Spans::const_iterator begin() const { return spans_.begin(); }
  Spans::const_iterator end() const { return spans_.end(); }
  const ComputeSpan& operator[](std::size_t i) const { return spans_[i]; }
  const ComputeSpan& back() const { return spans_.back(); }

  /// Returns false and ignores a span that begins before the newest.
  bool push(const ComputeSpan& span);
  /// Seconds before a moment: O(log n).
  double spent(double time) const;
  /// Replaces the spans that end at or before the last of these moments by the time spent before each moment.
  void condense(const std::vector<double>& moments);
  void thin() { past_.thin(); }
  /// Keeps the spans of micro-steps up to this one, which ends at `time`.
  void truncate(std::int64_t microStep, double time);

 private:
  Spans spans_;
  std::vector<double> before_;  // prefix sums, one entry per span
  PastTime past_;
};

/// Busy time: disjoint intervals in order, even if the added spans overlap.
class BusyTime {
 public:
  void add(double begin, double end);
  /// Seconds before a moment: O(log n).
  double spent(double time) const;
  /// Begin of the first interval that contains a moment or follows it; the moment itself if there is none.
  double beginReaching(double time) const;
  double end() const { return intervals_.empty() ? past_.end() : intervals_.back().end; }
  /// Replaces the intervals before the last of these moments by the time spent before each moment.
  void condense(const std::vector<double>& moments);
  void thin() { past_.thin(); }
  /// Forgets intervals and condensed time after `time`.
  void truncate(double time);
  /// Forgets intervals that end after `time`, and condensed time after it.
  void dropAfter(double time);

 private:
  struct Interval {
    double begin = 0.0;
    double end = 0.0;
  };
  std::vector<Interval> intervals_;
  std::vector<double> before_;  // prefix sums of their lengths
  PastTime past_;
};

/// Transfer time of a rank. Overlapping time of a collective that trains the weights and one that does not belongs to
/// the former.
class TransferTime {
 public:
  void add(const SyncSpan& span);
  /// Seconds before a moment in which collectives that train the weights were in progress.
  double training(double time) const { return training_.spent(time); }
  /// Seconds before a moment in which only other collectives were in progress.
  double aside(double time) const { return all_.spent(time) - training_.spent(time); }
  void condense(const std::vector<double>& moments);
  void thin();
  void truncate(double time);

 private:
  BusyTime training_;
  BusyTime all_;
};

/// Transfer time of a rank over one axis.
struct AxisUse {
  std::uint8_t axis = 0;  ///< index into SyncTimeline::axes()
  TransferTime time;
};

/// One rank's spans, each kind in order of begin.
class Lane {
 public:
  std::vector<MicroPlace> micro;  ///< in order of micro-steps, which a pipeline's forwards keep
  SpanTrack forward;
  SpanTrack backward;
  SpanTrack step;
  std::vector<SyncSpan> sync;  ///< may overlap: some continue while the rank computes
  std::vector<AxisUse> uses;   ///< the same communication by axis

  /// Minimum number of the newest micro-steps that keep their spans; the maximum is twice that.
  static constexpr std::size_t leastKept = std::size_t{1} << 15;
  /// Maximum number of places that earlier micro-steps share.
  static constexpr std::size_t mostPast = std::size_t{1} << 13;

  double begin() const;
  double end() const;
  /// Number of micro-steps so far.
  std::int64_t microSteps() const { return microSteps_; }
  /// The newest micro-step without spans; 0: none.
  std::int64_t condensedTo() const { return past_ == 0 ? 0 : micro[past_ - 1].last(); }
  /// Seconds spent per kind before a moment: O(log n). The difference between two moments is the time between them;
  /// where spans are gone, it is interpolated over the micro-steps that share a place.
  LaneShare spent(double time) const;
  /// Seconds between two moments in which the run was paused.
  double paused(double from, double to) const { return paused_.spent(to) - paused_.spent(from); }
  /// Largest payload of a collective that begins in [from, to).
  std::int64_t largestBytes(double from, double to) const;
  /// Returns the collectives from the first one that ends at or after a moment.
  std::vector<SyncSpan>::const_iterator syncReaching(double time) const;

  /// Marks the run as paused at this moment. The whole gap between the rank's spans around it counts as its pause,
  /// because the time to stop and to continue is not training.
  void pauseAt(double time) { pausedAt_ = time; }
  void push(accrue::ComputeKind kind, const ComputeSpan& span);
  /// Adds a span in any order: an overlapping one is reported when it is waited for, after others that began later.
  void pushSync(const SyncSpan& span);
  /// Reports that all ranks of its group have begun it, the last one at `last`.
  void meet(const SyncSpan& span, double last);
  /// Drops the spans of all but the newest micro-steps if there are too many; returns the dropped collectives.
  std::vector<SyncSpan> condense();
  /// Keeps the spans of micro-steps up to this one.
  void truncate(std::int64_t microStep);

 private:
  void endPause(double begin);
  void count(const SyncSpan& span);
  double beginAfter(std::int64_t microStep) const;
  void mergePlaces(std::size_t first, std::size_t last, std::size_t neighbours);
  template <typename Take>
  void eachTrack(Take take);

  std::size_t past_ = 0;     // places at the front of `micro` without spans
  std::size_t sharing_ = 1;  // micro-steps per place there
  std::int64_t microSteps_ = 0;
  BusyTime communication_;  // over all axes, with waiting
  TransferTime transfers_;  // without waiting
  BusyTime paused_;
  std::optional<double> pausedAt_;  // set while no later span is known
};

}  // namespace accrue::ui
