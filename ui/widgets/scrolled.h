// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QScrollArea>

namespace accrue::ui {

/// Makes a page scroll if its panel is lower than it. The area has no frame, is as wide as the panel, and is skipped by
/// Tab. `sideways`: whether it also scrolls horizontally, or is cut off.
QScrollArea* scrolled(QWidget* page, QWidget* panel, Qt::ScrollBarPolicy sideways = Qt::ScrollBarAlwaysOff);
/// Does the same and fills the panel with it.
QScrollArea* fillScrolled(QWidget* panel, QWidget* page, Qt::ScrollBarPolicy sideways = Qt::ScrollBarAlwaysOff);

}  // namespace accrue::ui
