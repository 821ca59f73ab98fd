// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <functional>

namespace accrue::ui {

class MessageBar;
class RunQueue;

/// Shows the state of the queue. While runs wait, the message offers to drop them. If they were dropped because the
/// user stopped a run, it offers `go_on` to continue with them. `missing`: sentences about runs that could not be
/// queued; `whole`: sentence for an end without any.
void postQueue(MessageBar* bar, RunQueue* queue, const QStringList& missing, const QString& whole,
               std::function<void()> go_on);

}  // namespace accrue::ui
