// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <QPointer>
#include <QTimer>

#include "series/run_series.h"

class QLabel;
class QPushButton;
class QTreeWidget;

namespace accrue::ui {

class DifferencePlot;

/// Two runs: the keys that differ, how they ended, and where their losses part. Follows runs that train.
class CompareSheet : public QDialog {
  Q_OBJECT

 public:
  explicit CompareSheet(QWidget* parent);
  void setRuns(RunSeries* first, RunSeries* second);

 Q_SIGNALS:
  void partingRequested();

 private:
  void showRuns();

  QPointer<RunSeries> first_;
  QPointer<RunSeries> second_;
  QLabel* said_;
  DifferencePlot* difference_;
  QTreeWidget* table_;
  QPushButton* go_;
  QTimer follow_;  ///< runs while one of them trains
};

}  // namespace accrue::ui
