// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QIcon>
#include <QWidget>

#include "accrue/run/events/run_state.h"

namespace accrue::ui {

/// A run's state as icon, word and colour. Its accessible name follows, so a change is announced once.
class StateChip : public QWidget {
  Q_OBJECT

 public:
  explicit StateChip(QWidget* parent = nullptr);

  /// `tone` determines the colour.
  void setLook(RunState tone, const QString& word, const QIcon& icon);
  RunState state() const { return state_; }
  QString word() const { return word_; }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return sizeHint(); }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  RunState state_ = RunState::idle;
  QString word_;
  QIcon icon_;
};

}  // namespace accrue::ui
