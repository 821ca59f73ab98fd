// SPDX-License-Identifier: GPL-3.0-or-later
#include "queue_commands.h"

#include <QWidget>

#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "kit/actions.h"
#include "kit/raise.h"
#include "live/run_queue.h"
#include "live/training_commands.h"
#include "queue_message.h"
#include "runs/groups_sheet.h"
#include "runs/run_library.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

QueueCommands::QueueCommands(const Actions& actions, const Parts& parts, QWidget* window)
    : QObject(window), parts_(parts), window_(window) {
  connect(actions[Command::queueRun], &QAction::triggered, this, [this] {
    if (parts_.training->formHolds()) addSetUp();
  });
  connect(actions[Command::groupRuns], &QAction::triggered, this, &QueueCommands::showGroups);
  connect(parts_.preflight, &PreflightRunner::finished, this, [this] {
    if (adding_) addSetUp();
  });
  connect(parts_.queue, &RunQueue::changed, this, &QueueCommands::showAdded);
  connect(parts_.queue, &RunQueue::finished, this, &QueueCommands::showAdded);
}

void QueueCommands::addSetUp() {
  adding_ = !parts_.preflight->isCurrent();
  if (adding_) {
    parts_.preflight->refresh();
    return;
  }
  const Preflight& checked = parts_.preflight->result();
  if (!checked.plan || has_errors(checked.findings)) {
    parts_.bar->post({QLatin1String("refused"),
                      RunState::failed,
                      tr("The set-up was not queued: its errors must be fixed first"),
                      {},
                      {}});
    return;
  }
  QString name = QString::fromStdString(checked.plan->spec.run.name);
  if (name.isEmpty()) name = parts_.document->displayName().section(QLatin1Char('.'), 0, 0);
  added_ = true;
  parts_.queue->add({*checked.plan, tr("%1, N = %2").arg(name).arg(checked.plan->window.steps)});
}

void QueueCommands::showAdded() {
  if (!added_) return;
  added_ = parts_.queue->isActive();
  postQueue(parts_.bar, parts_.queue, {}, {}, [this] {
    added_ = true;
    parts_.queue->goOn();
  });
}

void QueueCommands::showGroups() {
  if (!groups_) groups_ = new GroupsSheet(parts_.library, window_);
  groups_->refresh();
  raiseWindow(groups_);
}

}  // namespace accrue::ui
