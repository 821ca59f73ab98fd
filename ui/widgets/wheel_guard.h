// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

class QWidget;

namespace accrue::ui {

/// Event filter that keeps the wheel from editing a field: the wheel scrolls the surrounding area. Scrolling may move
/// even the focused field under the pointer.
class WheelGuard : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;
  /// Guards a spin box, combo box or slider, and lets it take focus only by click and Tab.
  static void protect(QWidget* widget);

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;
};

}  // namespace accrue::ui
