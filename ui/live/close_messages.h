// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class Actions;
class CloseGuard;
class MessageBar;

/// Shows in the message bar why the window cannot close yet, and lets the user forget a remembered answer.
void connectCloseMessages(const Actions& actions, CloseGuard* guard, MessageBar* bar, QObject* parent);

}  // namespace accrue::ui
