// SPDX-License-Identifier: GPL-3.0-or-later
// LaneClock: maps a rank's times to the X axis. On wall time the map is the identity. On every other clock a
// micro-step, with everything until the next one (waiting, collectives, the optimizer), fills its place on that clock
// in proportion to time, so micro-steps are equal blocks. Pauses take no space there.
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
  /// Whether X lies between the rank's first and last operation.
  bool covers(double x) const;
  /// Returns the first and one past the last micro span that may be visible within [from, to] of X.
  std::pair<std::size_t, std::size_t> spansWithin(double from, double to) const;
  /// Time of a micro span's place: from its begin to the next one's.
  std::pair<double, double> period(std::size_t span) const;
  /// Whether the spans of its micro-steps are gone, and only the time spent is kept.
  bool isPast(std::size_t span) const { return lane_.micro[span].microStep <= lane_.condensedTo(); }

 private:
  /// Elapsed fraction of a span's place at `time`, 0 to 1.
  double part(std::size_t span, double time) const;
  double startOf(std::size_t span) const;
  double endOf(std::size_t span) const;
  double positionAfter(std::int64_t microStep) const;

  const Lane& lane_;
  const ClockTable& micro_;
  Clock clock_;
};

}  // namespace accrue::ui
