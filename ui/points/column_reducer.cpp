// SPDX-License-Identifier: GPL-3.0-or-later
#include "column_reducer.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace accrue::ui {

namespace {

constexpr double gap = std::numeric_limits<double>::quiet_NaN();

class LineBuilder {
 public:
  LineBuilder(const SeriesView& view, ReducedLine& line) : view_(view), line_(line) {}

  void raw(std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) push(i);
  }

  void bin(std::size_t first, std::size_t last) {
    if (last - first <= 4) {
      raw(first, last);
      return;
    }
    const MinMax range = view_.pyramid->range(*view_.values, first, last);
    if (range.empty()) {
      line_.x.push_back((*view_.clock)[first]);
      line_.y.push_back(gap);
      line_.reduced = true;
      return;
    }
    std::size_t begin = first;
    while (!std::isfinite((*view_.values)[begin])) ++begin;
    std::size_t end = last - 1;
    while (!std::isfinite((*view_.values)[end])) --end;
    const std::size_t one = std::min(range.lowAt, range.highAt);
    const std::size_t two = std::max(range.lowAt, range.highAt);
    push(begin);
    if (one != begin) push(one);
    if (two != one && two != begin) push(two);
    if (end != two && end != one && end != begin) push(end);
    line_.reduced = true;
  }

 private:
  void push(std::size_t i) {
    const double value = (*view_.values)[i];
    line_.x.push_back((*view_.clock)[i]);
    line_.y.push_back(std::isfinite(value) ? value : gap);
  }

  const SeriesView& view_;
  ReducedLine& line_;
};

}  // namespace

SeriesView viewOf(const SeriesStore& store, Clock clock) {
  return {&store.clock(clock), &store.values(), &store.pyramid()};
}

double binWidth(double span, double pixels) {
  const double wanted = 2.0 * span / std::max(pixels, 1.0);
  if (!(wanted > 0.0) || !std::isfinite(wanted)) return 1.0;
  int exponent = 0;
  const double mantissa = 2.0 * std::frexp(wanted, &exponent);  // in [1, 2)
  const double step = std::ceil(mantissa * 4.0 - 1e-9) / 4.0;
  return std::ldexp(step, exponent - 1);
}

std::size_t pointsWithin(const SeriesView& view, double from, double to) {
  if (view.size() == 0 || !(to >= from)) return 0;
  return std::min(view.clock->upperBound(to), view.size()) - std::min(view.clock->lowerBound(from), view.size());
}

ReducedLine reduceLine(const SeriesView& view, double from, double to, double width) {
  ReducedLine line;
  if (view.size() == 0 || !(to >= from) || !(width > 0.0)) return line;
  const ClockColumn& clock = *view.clock;
  const std::size_t size = std::min(view.size(), clock.size());
  const std::size_t first = std::min(clock.lowerBound(from), size);
  const std::size_t last = std::min(clock.upperBound(to), size);
  line.points = last - first;
  LineBuilder build(view, line);
  if (first > 0) build.raw(first - 1, first);
  const auto bins = static_cast<std::size_t>((to - from) / width) + 1;
  if (line.points <= 4 * bins) {
    build.raw(first, last);
  } else {
    line.x.reserve(4 * bins + 2);
    line.y.reserve(4 * bins + 2);
    std::size_t at = first;
    while (at < last) {
      const double edge = (std::floor(clock[at] / width) + 1.0) * width;
      std::size_t next = std::min(clock.lowerBound(edge), last);
      if (next <= at) next = at + 1;  // the edge was rounded onto the point itself
      build.bin(at, next);
      at = next;
    }
  }
  if (last < size) build.raw(last, last + 1);
  return line;
}

std::vector<BandColumn> reduceBand(const SeriesView& view, double from, double to, double width) {
  std::vector<BandColumn> band;
  if (view.size() == 0 || !(to >= from) || !(width > 0.0)) return band;
  const ClockColumn& clock = *view.clock;
  const std::size_t size = std::min(view.size(), clock.size());
  std::size_t at = std::min(clock.lowerBound(from), size);
  const std::size_t last = std::min(clock.upperBound(to), size);
  while (at < last) {
    const double bin = std::floor(clock[at] / width + 0.5);
    std::size_t next = std::min(clock.lowerBound((bin + 0.5) * width), last);
    if (next <= at) next = at + 1;
    const MinMax range = view.pyramid->range(*view.values, at, next);
    if (!range.empty()) band.push_back({bin * width, range.low, range.high});
    at = next;
  }
  return band;
}

MinMax valueRange(const SeriesView& view, double from, double to) {
  if (view.size() == 0) return {};
  const std::size_t first = view.clock->lowerBound(from);
  const std::size_t last = std::min(view.clock->upperBound(to), view.size());
  return view.pyramid->range(*view.values, first, last);
}

double smallestPositive(const SeriesView& view, double from, double to) {
  const MinMax all = valueRange(view, from, to);
  if (all.empty() || all.high <= 0.0) return gap;
  if (all.low > 0.0) return all.low;
  double smallest = all.high;
  const std::size_t last = std::min(view.clock->upperBound(to), view.size());
  for (std::size_t i = view.clock->lowerBound(from); i < last; ++i) {
    const double value = (*view.values)[i];
    if (value > 0.0 && value < smallest) smallest = value;
  }
  return smallest;
}

}  // namespace accrue::ui
