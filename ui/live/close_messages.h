// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class Actions;
class CloseGuard;
class MessageBar;

/// Says in the message bar what keeps the window from closing, and lets the user forget a remembered answer.
void connectCloseMessages(const Actions& actions, CloseGuard* guard, MessageBar* bar, QObject* parent);

}  // namespace accrue::ui
