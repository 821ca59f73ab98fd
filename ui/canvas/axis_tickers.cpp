// SPDX-License-Identifier: GPL-3.0-or-later
#include "axis_tickers.h"

#include <array>
#include <cmath>

#include "kit/number_text.h"

namespace accrue::ui {

namespace {

/// 1, 2, 2.5 or 5 times a power of ten, about span / count.
double niceStep(double span, int count) {
  const double rough = span / std::max(count, 1);
  const double base = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 2.5, 5.0})
    if (rough <= base * step * (1.0 + 1e-9)) return base * step;
  return base * 10.0;
}

}  // namespace

ValueTicker::ValueTicker() {
  setTickCount(4);
}

double ValueTicker::getTickStep(const QCPRange& range) {
  step_ = niceStep(range.size(), tickCount());
  return step_;
}

QString ValueTicker::getTickLabel(double tick, const QLocale&, QChar, int) {
  return tickText(tick, step_);
}

int ValueTicker::getSubTickCount(double) {
  return 0;
}

LogTicker::LogTicker() {
  setTickCount(4);
}

QVector<double> LogTicker::createTickVector(double, const QCPRange& range) {
  QVector<double> ticks;
  if (!(range.lower > 0.0) || !(range.upper > range.lower)) return ticks;
  const double decades = std::log10(range.upper / range.lower);
  linearStep_ = 0.0;
  if (decades < 0.8) {
    linearStep_ = niceStep(range.size(), tickCount());
    for (double k = std::ceil(range.lower / linearStep_); k * linearStep_ <= range.upper && ticks.size() < 50; k += 1.0)
      ticks.append(k * linearStep_);
    return ticks;
  }
  const int first = static_cast<int>(std::floor(std::log10(range.lower)));
  const int last = static_cast<int>(std::ceil(std::log10(range.upper)));
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / 6.0)));
  for (int exponent = first; exponent <= last; ++exponent) {
    if (exponent % stride != 0) continue;
    const double base = std::pow(10.0, exponent);
    for (const double step : {1.0, 2.0, 5.0}) {
      if (step > 1.0 && decades > 2.5) continue;
      const double tick = base * step;
      if (tick >= range.lower && tick <= range.upper) ticks.append(tick);
    }
  }
  return ticks;
}

QVector<double> LogTicker::createSubTickVector(int, const QVector<double>&) {
  return {};
}

QString LogTicker::getTickLabel(double tick, const QLocale&, QChar, int) {
  if (linearStep_ > 0.0) return tickText(tick, linearStep_);
  const int exponent = static_cast<int>(std::floor(std::log10(tick) + 1e-9));
  if (exponent >= -3 && exponent < 6) return tickText(tick, std::pow(10.0, exponent));
  return powerText(tick / std::pow(10.0, exponent), exponent, 0);
}

BinaryTicker::BinaryTicker() {
  setTickCount(4);
}

QVector<double> BinaryTicker::createTickVector(double, const QCPRange& range) {
  QVector<double> ticks;
  if (!(range.lower > 0.0) || !(range.upper > range.lower)) return ticks;
  const int first = static_cast<int>(std::ceil(std::log2(range.lower) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log2(range.upper) + 1e-9));
  const int stride = std::max(1, (last - first) / std::max(tickCount(), 1));
  for (int exponent = first; exponent <= last; ++exponent)
    if (exponent % stride == 0) ticks.append(std::ldexp(1.0, exponent));
  return ticks;
}

QVector<double> BinaryTicker::createSubTickVector(int, const QVector<double>&) {
  return {};
}

QString BinaryTicker::getTickLabel(double tick, const QLocale&, QChar, int) {
  return powerOfTwoText(static_cast<int>(std::lround(std::log2(tick))));
}

ClockTicker::ClockTicker() {
  setTickCount(7);
}

double ClockTicker::getTickStep(const QCPRange& range) {
  step_ = niceStep(range.size(), tickCount());
  const bool timed = clock_ == Clock::seconds || clock_ == Clock::computeSeconds;
  if (clockCounts(clock_)) step_ = std::max(1.0, step_ == 2.5 ? 5.0 : step_);
  if (timed && range.upper >= 120.0) {
    static constexpr std::array<double, 15> steps = {1,   2,   5,    10,   15,   30,    60,   120,
                                                     300, 600, 1800, 3600, 7200, 21600, 86400};
    const double rough = range.size() / tickCount();
    step_ = std::ceil(rough / 86400.0) * 86400.0;
    for (const double step : steps)
      if (rough <= step) {
        step_ = step;
        break;
      }
  }
  return step_;
}

QString ClockTicker::getTickLabel(double tick, const QLocale&, QChar, int) {
  if (tick > lastLabel_) return {};
  const bool timed = clock_ == Clock::seconds || clock_ == Clock::computeSeconds;
  if (timed && std::abs(tick) >= 120.0) return durationShort(tick);
  return tickText(tick, step_);
}

int ClockTicker::getSubTickCount(double) {
  return 0;
}

}  // namespace accrue::ui
