// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace accrue::ui {

/// A text for a tooltip in lines of some sixty characters: the toolkit wraps only rich text.
QString tipText(const QString& text);

}  // namespace accrue::ui
