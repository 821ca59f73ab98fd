// SPDX-License-Identifier: GPL-3.0-or-later
// Positions and labels of ticks: thin spaces, SI steps, powers of ten, minutes for long times.
#pragma once

#include <limits>

#include "kit/clock.h"
#include "qcp.h"

namespace accrue::ui {

/// Values on a linear axis.
class ValueTicker : public QCPAxisTicker {
 public:
  ValueTicker();

 protected:
  double getTickStep(const QCPRange& range) override;
  QString getTickLabel(double tick, const QLocale& locale, QChar formatChar, int precision) override;
  int getSubTickCount(double step) override;

 private:
  double step_ = 1.0;
};

/// Values on a logarithmic axis: powers of ten, with 2 and 5 between them if there is room; linear steps if the range
/// is less than a decade.
class LogTicker : public QCPAxisTicker {
 public:
  LogTicker();

 protected:
  QVector<double> createTickVector(double step, const QCPRange& range) override;
  QVector<double> createSubTickVector(int count, const QVector<double>& ticks) override;
  QString getTickLabel(double tick, const QLocale& locale, QChar formatChar, int precision) override;

 private:
  double linearStep_ = 0.0;  // 0 = decades
};

/// Powers of two on a logarithmic axis, at equal steps: about four of them.
class BinaryTicker : public QCPAxisTicker {
 public:
  BinaryTicker();

 protected:
  QVector<double> createTickVector(double step, const QCPRange& range) override;
  QVector<double> createSubTickVector(int count, const QVector<double>& ticks) override;
  QString getTickLabel(double tick, const QLocale& locale, QChar formatChar, int precision) override;
};

/// Positions on a clock: integers for counts, minutes and hours for long times.
class ClockTicker : public QCPAxisTicker {
 public:
  ClockTicker();
  void setClock(Clock clock) { clock_ = clock; }
  /// Label of a tick.
  QString labelOf(double tick) { return getTickLabel(tick, {}, u'g', 6); }
  /// Ticks beyond this position have no label, because the axis title is there.
  void setLastLabel(double position) { lastLabel_ = position; }

 protected:
  double getTickStep(const QCPRange& range) override;
  QString getTickLabel(double tick, const QLocale& locale, QChar formatChar, int precision) override;
  int getSubTickCount(double step) override;

 private:
  Clock clock_ = Clock::update;
  double step_ = 1.0;
  double lastLabel_ = std::numeric_limits<double>::infinity();
};

}  // namespace accrue::ui
