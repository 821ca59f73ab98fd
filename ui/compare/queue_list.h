// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QListWidget;
class QToolButton;

namespace accrue::ui {

class RunQueue;

/// Waiting runs, in order, under the runs table; hidden if there are none. Each can be moved and removed.
class QueueList : public QWidget {
  Q_OBJECT

 public:
  explicit QueueList(RunQueue* queue, QWidget* parent = nullptr);
  void move(int by);
  void removeCurrent();

 private:
  void showQueue();
  /// Index of the current row in the queue; -1 without one.
  int current() const;

  RunQueue* queue_;
  QListWidget* list_;
  QToolButton* up_;
  QToolButton* down_;
  QToolButton* remove_;
};

}  // namespace accrue::ui
