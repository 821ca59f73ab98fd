// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QDockWidget;
class QHBoxLayout;
class QToolButton;

namespace accrue::ui {

/// The title of a dock: its name, the controls that its content wants there, and a button that hides it. It can be
/// dragged like any title.
class DockTitle : public QWidget {
  Q_OBJECT

 public:
  explicit DockTitle(QDockWidget* dock);
  /// Puts a control at the right of the name; stretch gives it the room that is left.
  void addControl(QWidget* control, int stretch = 0);
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QHBoxLayout* layout_;
  QToolButton* close_;
};

}  // namespace accrue::ui
