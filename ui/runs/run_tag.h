// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointer>
#include <QWidget>

#include "series/run_series.h"

class QDockWidget;

namespace accrue::ui {

/// A run's swatch and name, at the top of a panel about it; hidden without a run.
class RunTag : public QWidget {
  Q_OBJECT

 public:
  explicit RunTag(QWidget* parent = nullptr);
  void setRun(const RunSeries* run);
  const RunSeries* run() const { return run_; }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  void showRun();

  QPointer<const RunSeries> run_;
  QString name_;
  int color_ = -1;
};

/// Adds a tag to a dock's title.
RunTag* addRunTag(QDockWidget* dock);

}  // namespace accrue::ui
