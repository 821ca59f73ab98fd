// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

class QDockWidget;

namespace accrue::ui {

/// A dock's height with that of the tabs over it, which QMainWindow::resizeDocks counts as a part of it. Asked for the
/// dock's own height, it would make the dock lower by the tabs'.
int heightWithTabs(const QDockWidget& dock);

}  // namespace accrue::ui
