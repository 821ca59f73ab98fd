// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace accrue::ui {

/// Wraps a tooltip's text into lines of about sixty characters, because the toolkit wraps only rich text.
QString tipText(const QString& text);

}  // namespace accrue::ui
