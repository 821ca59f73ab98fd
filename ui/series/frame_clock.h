// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QTimer>

namespace accrue::ui {

/// The beat in which the window draws: panels that show numbers are refreshed at most once a frame, and only if numbers
/// have moved. Thread: GUI.
class FrameClock : public QObject {
  Q_OBJECT

 public:
  explicit FrameClock(QObject* parent);
  void start() { timer_.start(); }
  /// Numbers that panels show have changed.
  void noteMoved() { moved_ = true; }
  /// One frame, now.
  void tick();

 Q_SIGNALS:
  /// Numbers have moved since the last frame.
  void refresh();
  void frame();

 private:
  QTimer timer_;
  bool moved_ = true;
};

}  // namespace accrue::ui
