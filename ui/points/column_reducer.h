// SPDX-License-Identifier: GPL-3.0-or-later
// Reduction of stored points to the resolution of a plot. Pure functions. A line keeps the first, smallest, largest and
// last point of every bin at their true places. A bin is two pixels or slightly more, so a line has at most two points
// per pixel. Bins lie at multiples of their width in data space, so panning and new data do not move them.
#pragma once

#include <cstddef>
#include <vector>

#include "series_store.h"

namespace accrue::ui {

/// A column of values with its positions on one clock: common form of measured and smoothed series.
struct SeriesView {
  const ClockColumn* clock = nullptr;
  const Chunked<double>* values = nullptr;
  const MinMaxPyramid* pyramid = nullptr;
  std::size_t size() const { return values == nullptr ? 0 : values->size(); }
};

SeriesView viewOf(const SeriesStore& store, Clock clock);

struct ReducedLine {
  std::vector<double> x;
  std::vector<double> y;   ///< NaN at a gap of the line
  std::size_t points = 0;  ///< stored points in the range
  bool reduced = false;    ///< fewer points are shown than stored
};

struct BandColumn {
  double x = 0.0;  ///< centre of the bin
  double low = 0.0;
  double high = 0.0;
};

/// Width of a bin: 2 to 2.5 pixels, with mantissa 1, 1.25, 1.5 or 1.75, so that it changes rarely while a range grows.
double binWidth(double span, double pixels);

/// Number of points in [from, to].
std::size_t pointsWithin(const SeriesView& view, double from, double to);
/// Returns the points in [from, to] and one beyond each end, so that the line reaches the edges.
ReducedLine reduceLine(const SeriesView& view, double from, double to, double width);
/// Smallest and largest value of each bin that holds a finite point; bins are centred on multiples of `width`.
std::vector<BandColumn> reduceBand(const SeriesView& view, double from, double to, double width);
/// Smallest and largest finite value in [from, to].
MinMax valueRange(const SeriesView& view, double from, double to);
/// Smallest finite value above zero in [from, to], for a logarithmic axis; NaN if there is none.
double smallestPositive(const SeriesView& view, double from, double to);

}  // namespace accrue::ui
