// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QScrollArea>

namespace accrue::ui {

/// A page that scrolls where its panel is lower than it is: without a frame, as wide as the panel, and passed over by
/// Tab. `sideways`: whether it scrolls in that direction as well, or is cut there.
QScrollArea* scrolled(QWidget* page, QWidget* panel, Qt::ScrollBarPolicy sideways = Qt::ScrollBarAlwaysOff);
/// The same, as all that the panel shows.
QScrollArea* fillScrolled(QWidget* panel, QWidget* page, Qt::ScrollBarPolicy sideways = Qt::ScrollBarAlwaysOff);

}  // namespace accrue::ui
