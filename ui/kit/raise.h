// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

namespace accrue::ui {

/// Shows a window beside the main one, in front, and gives it the keyboard.
inline void raiseWindow(QWidget* window) {
  window->show();
  window->raise();
  window->activateWindow();
}

}  // namespace accrue::ui
