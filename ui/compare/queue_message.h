// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <functional>

namespace accrue::ui {

class MessageBar;
class RunQueue;

/// Shows how the queue stands. While runs wait, the message offers to leave them out; where a run that the user stopped
/// left out the others, to go on with them, by `go_on`. `missing`: sentences on runs that could not be queued;
/// `whole`: one for an end that lacks none.
void postQueue(MessageBar* bar, RunQueue* queue, const QStringList& missing, const QString& whole,
               std::function<void()> go_on);

}  // namespace accrue::ui
