// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <functional>

namespace accrue::ui {

class MessageBar;
class RunQueue;

/// Shows how the queue stands. While runs wait, the message offers to leave them out; where a run that the user stopped
/// left out the others, to go on with them, by `go_on`. `more`: sentences for after the queue's own.
void postQueue(MessageBar* bar, RunQueue* queue, const QStringList& more, std::function<void()> go_on);

}  // namespace accrue::ui
