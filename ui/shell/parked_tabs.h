// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMainWindow>

namespace accrue::ui {

/// The tab bar of docks that are hidden lies beside the window, where Qt leaves it visible: the Tab key and a screen
/// reader must not be led to it. Tabs keep their whole names: those that find no room are scrolled to.
class ParkedTabs final : public QObject {
 public:
  explicit ParkedTabs(QMainWindow* window);

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;
};

}  // namespace accrue::ui
