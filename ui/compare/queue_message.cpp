// SPDX-License-Identifier: GPL-3.0-or-later
#include "queue_message.h"

#include <QCoreApplication>
#include <algorithm>
#include <utility>

#include "live/run_queue.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

void postQueue(MessageBar* bar, RunQueue* queue, const QStringList& missing, const QString& whole,
               std::function<void()> go_on) {
  const QString id = QStringLiteral("queue");
  const auto& runs = queue->runs();
  const auto has = [&runs](QueuedState state) {
    return std::ranges::find(runs, state, &QueuedRun::state) != runs.end();
  };
  if (runs.empty()) return bar->withdraw(id);
  const bool finished =
      std::ranges::all_of(runs, [](const QueuedRun& run) { return run.state == QueuedState::finished; });
  const bool all = finished && missing.isEmpty();
  QStringList parts{queue->sentence()};
  parts << missing;
  if (all && !queue->isActive() && !whole.isEmpty()) parts << whole;
  Message message{
      .id = id, .tone = RunState::running, .text = parts.join(QStringLiteral(". ")), .action = {}, .act = {}};
  if (queue->isActive()) {
    if (queue->waiting() > 0) message.action = QCoreApplication::translate("QueueMessage", "Cancel the rest");
    message.act = [queue] { queue->cancel(); };
  } else {
    message.tone = all ? RunState::finished : RunState::degraded;
    if (has(QueuedState::stopped) && has(QueuedState::left_out))
      message.action = QCoreApplication::translate("QueueMessage", "Go on with the rest");
    message.act = std::move(go_on);
  }
  bar->post(std::move(message));
}

}  // namespace accrue::ui
