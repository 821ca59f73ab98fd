// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

#include "accrue/run/record/curve_comparison.h"
#include "kit/clock.h"

namespace accrue::ui {

/// Difference of two runs' losses, second minus first, on its own axis around zero.
/// Equal runs give a straight line at 0.
class DifferencePlot : public QWidget {
  Q_OBJECT

 public:
  explicit DifferencePlot(QWidget* parent = nullptr);
  /// Positions ascend; non-finite differences leave gaps.
  void setPoints(const std::vector<SharedPoint>& points);
  /// Sets the line above the plot: the two runs and the clock.
  void setRuns(const QString& first, const QString& second, Clock clock);
  /// The largest distance from zero; 0 for equal runs.
  double extent() const { return extent_; }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<double> positions_;
  std::vector<double> differences_;
  double extent_ = 0.0;
  QString runs_;
};

}  // namespace accrue::ui
