// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QListWidget;
class QToolButton;

namespace accrue::ui {

class RunQueue;

/// The runs that wait, in their order, under the runs table; hidden while none does. Each can be moved and taken out.
class QueueList : public QWidget {
  Q_OBJECT

 public:
  explicit QueueList(RunQueue* queue, QWidget* parent = nullptr);
  void move(int by);
  void removeCurrent();

 private:
  void showQueue();
  /// Of the current row in the queue; -1 without one.
  int current() const;

  RunQueue* queue_;
  QListWidget* list_;
  QToolButton* up_;
  QToolButton* down_;
  QToolButton* remove_;
};

}  // namespace accrue::ui
