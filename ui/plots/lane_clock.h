// SPDX-License-Identifier: GPL-3.0-or-later
// LaneClock: maps a rank's times to the X axis. On wall time the map is the identity. On every other clock a micro-step
// and everything after it until the next one (waiting, collectives, the optimizer) fill the micro-step's place on that
// clock in proportion to their time, so that micro-steps are equal blocks. Pauses have no place there.
#pragma once

#include "series/run_series.h"

namespace accrue::ui {

class LaneClock {
 public:
  LaneClock(const Lane& lane, const ClockTable& micro, Clock clock);

  double toX(double time) const;
  double toTime(double x) const;
  /// Seconds between two moments that X shows.
  double shown(double from, double to) const;
  /// Whether X lies between the begin and the end of what the rank did.
  bool covers(double x) const;
  /// First and one past the last micro span that may be visible within [from, to] of X.
  std::pair<std::size_t, std::size_t> spansWithin(double from, double to) const;
  /// The time that a micro span's place covers: from its begin to the next one's.
  std::pair<double, double> period(std::size_t span) const;
  /// True if the spans of its micro-steps are no longer kept: only the time spent is.
  bool isPast(std::size_t span) const { return lane_.micro[span].microStep <= lane_.condensedTo(); }

 private:
  /// How much of the time of a span's place has passed, 0 to 1.
  double part(std::size_t span, double time) const;
  double startOf(std::size_t span) const;
  double endOf(std::size_t span) const;
  double positionAfter(std::int64_t microStep) const;

  const Lane& lane_;
  const ClockTable& micro_;
  Clock clock_;
};

}  // namespace accrue::ui
