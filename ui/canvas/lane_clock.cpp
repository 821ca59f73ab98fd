// SPDX-License-Identifier: GPL-3.0-or-later
#include "lane_clock.h"

#include <algorithm>

namespace accrue::ui {

LaneClock::LaneClock(const Lane& lane, const ClockTable& micro, Clock clock)
    : lane_(lane), micro_(micro), clock_(clock) {}

double LaneClock::positionAfter(std::int64_t microStep) const {
  if (clock_ == Clock::microStep) return static_cast<double>(microStep);
  if (microStep <= 0 || micro_.size() == 0) return 0.0;
  const ClockColumn& steps = micro_[Clock::microStep];
  const std::size_t index = std::min(steps.lowerBound(static_cast<double>(microStep)), micro_.size() - 1);
  return micro_[clock_][index];
}

double LaneClock::startOf(std::size_t span) const {
  return positionAfter(lane_.micro[span].microStep - 1);
}

double LaneClock::endOf(std::size_t span) const {
  return positionAfter(lane_.micro[span].last());
}

std::pair<double, double> LaneClock::period(std::size_t span) const {
  const double begin = lane_.micro[span].begin;
  return {begin, span + 1 < lane_.micro.size() ? lane_.micro[span + 1].begin : std::max(lane_.end(), begin)};
}

double LaneClock::shown(double from, double to) const {
  return clock_ == Clock::seconds ? to - from : to - from - lane_.paused(from, to);
}

double LaneClock::part(std::size_t span, double time) const {
  const auto [begin, end] = period(span);
  const double whole = shown(begin, end);
  return whole > 0.0 ? std::clamp(shown(begin, time) / whole, 0.0, 1.0) : 0.0;
}

double LaneClock::toX(double time) const {
  if (clock_ == Clock::seconds || lane_.micro.empty()) return time;
  const auto after = std::upper_bound(lane_.micro.begin(), lane_.micro.end(), time,
                                      [](double t, const MicroPlace& place) { return t < place.begin; });
  if (after == lane_.micro.begin()) return startOf(0);
  const auto span = static_cast<std::size_t>(after - lane_.micro.begin() - 1);
  return startOf(span) + (endOf(span) - startOf(span)) * part(span, time);
}

double LaneClock::toTime(double x) const {
  if (clock_ == Clock::seconds || lane_.micro.empty()) return x;
  const auto [first, last] = spansWithin(x, x);
  const std::size_t span = std::min(first, lane_.micro.size() - 1);
  const auto [begin, end] = period(span);
  const double start = startOf(span);
  const double width = endOf(span) - start;
  const double wanted = width > 0.0 ? std::clamp((x - start) / width, 0.0, 1.0) : 0.0;
  if (lane_.paused(begin, end) == 0.0) return begin + (end - begin) * wanted;
  double low = begin;
  double high = end;
  for (int halvings = 0; halvings < 50; ++halvings) {
    const double middle = (low + high) / 2.0;
    (part(span, middle) < wanted ? low : high) = middle;
  }
  return high;
}

bool LaneClock::covers(double x) const {
  if (clock_ == Clock::seconds) return x >= lane_.begin() && x <= lane_.end();
  return !lane_.micro.empty() && x >= startOf(0) && x <= endOf(lane_.micro.size() - 1);
}

std::pair<std::size_t, std::size_t> LaneClock::spansWithin(double from, double to) const {
  const std::vector<MicroPlace>& spans = lane_.micro;
  if (clock_ == Clock::seconds) {
    const auto byBegin = [](const MicroPlace& place, double t) { return place.begin < t; };
    const auto first = std::lower_bound(spans.begin(), spans.end(), from, byBegin);
    const auto last = std::lower_bound(spans.begin(), spans.end(), to, byBegin);
    const auto low = static_cast<std::size_t>(first - spans.begin());
    return {low > 0 ? low - 1 : 0, static_cast<std::size_t>(last - spans.begin())};
  }
  std::size_t low = 0;
  std::size_t high = spans.size();
  while (low < high) {  // first span that ends at or after `from`
    const std::size_t middle = (low + high) / 2;
    if (endOf(middle) < from)
      low = middle + 1;
    else
      high = middle;
  }
  const std::size_t first = low;
  high = spans.size();
  while (low < high) {  // first span that starts after `to`
    const std::size_t middle = (low + high) / 2;
    if (startOf(middle) <= to)
      low = middle + 1;
    else
      high = middle;
  }
  return {first, low};
}

}  // namespace accrue::ui
