// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointer>
#include <QWidget>

#include "series/run_series.h"

class QLabel;
class QLineEdit;
class QTreeView;

namespace accrue::ui {

struct DockPanel;
class EventLogFilter;
class EventLogModel;

/// Events of the focused run as sentences, with a filter; follows the newest while scrolled to the end.
class EventsPanel : public QWidget {
  Q_OBJECT

 public:
  explicit EventsPanel(EventLogModel* log, QWidget* parent = nullptr);
  DockPanel dock();
  void setRun(const RunSeries* run);
  /// Controls for the dock's title.
  QWidget* titleControl() const;

 Q_SIGNALS:
  /// A row was opened: the plots should show its update.
  void updateRequested(qint64 update);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void followEnd();
  /// Shows the number of the run's events that are no longer in the log.
  void showOlder();
  void noteScroll();
  void copySelected();

  EventLogFilter* filter_;
  QLineEdit* search_;
  QLabel* older_;
  QTreeView* view_;
  QPointer<const RunSeries> run_;
  bool at_end_ = true;
};

}  // namespace accrue::ui
