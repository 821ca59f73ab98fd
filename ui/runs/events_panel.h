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

/// The events of the focused run as sentences, with a filter; follows the newest while it is scrolled to the end.
class EventsPanel : public QWidget {
  Q_OBJECT

 public:
  explicit EventsPanel(EventLogModel* log, QWidget* parent = nullptr);
  DockPanel dock();
  void setRun(const RunSeries* run);
  /// The controls for the dock's title.
  QWidget* titleControl() const;

 Q_SIGNALS:
  /// A row was opened: the update that the plots should show.
  void updateRequested(qint64 update);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void followEnd();
  /// Shows how many of the run's events are no longer in the log.
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
