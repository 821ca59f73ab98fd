// SPDX-License-Identifier: GPL-3.0-or-later
// Lane: what one rank did and when. The newest micro-steps keep every span; of older ones only the time spent on each
// kind is kept, at some moments, so that a run of any length takes a bounded amount of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

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

/// Where micro-steps begin on a lane: at the first operation of the first. One each, several where they are old.
struct MicroPlace {
  double begin = 0.0;
  std::int64_t microStep = 0;  ///< the first
  std::int64_t count = 1;
  std::int64_t last() const { return microStep + count - 1; }
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
  accrue::CollectivePurpose purpose = accrue::CollectivePurpose::unknown;
  bool reducesGradients = false;  ///< over data
  /// What trains no weights: the ranks agree on counts and norms, check, evaluate or save.
  bool isAside() const {
    using enum accrue::CollectivePurpose;
    return purpose == agreement || purpose == check || purpose == evaluation || purpose == checkpoint;
  }
};

/// How time on a lane was spent, in seconds.
struct LaneShare {
  double forward = 0.0;
  double backward = 0.0;
  double collective = 0.0;  ///< transfers that train the weights, without the waiting before them
  double aside = 0.0;       ///< the other transfers, likewise: see SyncSpan::isAside
  double step = 0.0;
};

/// Time spent before some moments, for a past whose spans are gone: between two moments it is spread evenly.
class PastTime {
 public:
  /// The past ends here; later times are not its own.
  double end() const { return end_.time; }
  double total() const { return end_.spent; }
  double spent(double time) const;
  /// Moments in order, at or after the past's end.
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

/// Operations of one kind, ordered by begin.
class SpanTrack {
 public:
  using Spans = std::vector<ComputeSpan>;
  bool empty() const { return spans_.empty(); }
  std::size_t size() const { return spans_.size(); }
  Spans::const_iterator begin() const { return spans_.begin(); }
  Spans::const_iterator end() const { return spans_.end(); }
  const ComputeSpan& operator[](std::size_t i) const { return spans_[i]; }
  const ComputeSpan& back() const { return spans_.back(); }

  /// False, and left out, if it begins before the newest.
  bool push(const ComputeSpan& span);
  /// Seconds before a moment: O(log n).
  double spent(double time) const;
  /// Keeps the time spent before these moments in place of the spans that end at or before the last of them.
  void condense(const std::vector<double>& moments);
  void thin() { past_.thin(); }
  /// Keeps the spans of micro-steps up to this one, which ends at a time.
  void truncate(std::int64_t microStep, double time);

 private:
  Spans spans_;
  std::vector<double> before_;  // prefix sums, one entry a span
  PastTime past_;
};

/// When something was under way: disjoint intervals in order, however the spans that were added overlap.
class BusyTime {
 public:
  void add(double begin, double end);
  /// Seconds before a moment: O(log n).
  double spent(double time) const;
  /// Where the first interval that reaches a moment or lies after it begins; that moment if there is none.
  double beginReaching(double time) const;
  double end() const { return intervals_.empty() ? past_.end() : intervals_.back().end; }
  /// Keeps the time spent before these moments in place of the intervals before the last of them.
  void condense(const std::vector<double>& moments);
  void thin() { past_.thin(); }
  /// Forgets the intervals, and what is condensed after a time.
  void truncate(double time);
  /// Forgets the intervals that end after a time, and what is condensed after it.
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

/// When a rank transferred. Where a collective that trains the weights overlaps one that does not, the time is the
/// former's.
class TransferTime {
 public:
  void add(const SyncSpan& span);
  /// Seconds before a moment in which collectives that train the weights were under way.
  double training(double time) const { return training_.spent(time); }
  /// The same of the others alone.
  double aside(double time) const { return all_.spent(time) - training_.spent(time); }
  void condense(const std::vector<double>& moments);
  void thin();
  void truncate(double time);

 private:
  BusyTime training_;
  BusyTime all_;
};

/// When a rank transferred over one axis.
struct AxisUse {
  std::uint8_t axis = 0;  ///< index into SyncTimeline::axes()
  TransferTime time;
};

/// One rank's spans, each kind ordered by begin.
class Lane {
 public:
  std::vector<MicroPlace> micro;  ///< by micro-step: a pipeline's forwards keep that order
  SpanTrack forward;
  SpanTrack backward;
  SpanTrack step;
  std::vector<SyncSpan> sync;  ///< these may overlap: some go on while the rank computes
  std::vector<AxisUse> uses;   ///< the same communication by axis

  /// At least so many of the newest micro-steps keep their spans, and at most twice as many.
  static constexpr std::size_t leastKept = std::size_t{1} << 15;
  /// The micro-steps before them share at most so many places.
  static constexpr std::size_t mostPast = std::size_t{1} << 13;

  double begin() const;
  double end() const;
  /// All micro-steps so far.
  std::int64_t microSteps() const { return microSteps_; }
  /// The newest micro-step whose spans are no longer kept; 0 = none.
  std::int64_t condensedTo() const { return past_ == 0 ? 0 : micro[past_ - 1].last(); }
  /// Time spent per kind before a moment: O(log n). The difference between two moments is the time spent between them;
  /// where spans are no longer kept it is that of the micro-steps that share a place, spread evenly.
  LaneShare spent(double time) const;
  /// Seconds between two moments in which the run was paused.
  double paused(double from, double to) const { return paused_.spent(to) - paused_.spent(from); }
  /// Largest payload of a collective that begins in [from, to).
  std::int64_t largestBytes(double from, double to) const;
  /// The collectives that end at or after a moment begin here or later.
  std::vector<SyncSpan>::const_iterator syncReaching(double time) const;

  /// The run was paused at this moment: the rank's own pause is all of the gap between its spans before and after it,
  /// for what it takes to stop and to go on is no part of the training.
  void pauseAt(double time) { pausedAt_ = time; }
  void push(accrue::ComputeKind kind, const ComputeSpan& span);
  /// In any order: one that overlaps is reported when it is waited for, after others that began later.
  void pushSync(const SyncSpan& span);
  /// All ranks of its group have begun this one, the last of them at `last`.
  void meet(const SyncSpan& span, double last);
  /// Gives up the spans of all but the newest micro-steps if they are too many; returns the collectives among them.
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

  std::size_t past_ = 0;     // places at the front of `micro` whose spans are gone
  std::size_t sharing_ = 1;  // micro-steps that share a place there
  std::int64_t microSteps_ = 0;
  BusyTime communication_;  // over all axes, with the waiting
  TransferTime transfers_;  // without
  BusyTime paused_;
  std::optional<double> pausedAt_;  // while no later span is known
};

}  // namespace accrue::ui
