// SPDX-License-Identifier: GPL-3.0-or-later
// Text for people, where no class of Qt's lends its tr().
#pragma once

#include <QCoreApplication>
#include <QString>

namespace accrue::ui {

inline QString tr(const char* text) {
  return QCoreApplication::translate("Accrue", text);
}

}  // namespace accrue::ui
