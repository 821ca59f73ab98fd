// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QDockWidget;
class QHBoxLayout;
class QLabel;
class QToolButton;

namespace accrue::ui {

/// Title bar of a dock: its name, its controls, and a button that hides it. It can be dragged like any title. A tabbed
/// dock has none, because its tab shows the name.
class DockTitle : public QWidget {
  Q_OBJECT

 public:
  explicit DockTitle(QDockWidget* dock);
  /// Adds a control to the right of the name; `stretch` gives it the remaining space.
  void addControl(QWidget* control, int stretch = 0);
  /// Adds a widget directly after the name.
  void addTag(QWidget* tag);
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  bool hasTab() const;
  void fitIcon();

  QDockWidget* dock_;
  QHBoxLayout* layout_;
  QLabel* name_;
  QToolButton* close_;
};

}  // namespace accrue::ui
