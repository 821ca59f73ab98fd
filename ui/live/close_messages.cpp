// SPDX-License-Identifier: GPL-3.0-or-later
#include "close_messages.h"

#include "close_guard.h"
#include "kit/actions.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

CloseMessages::CloseMessages(const Actions& actions, CloseGuard* guard, MessageBar* bar, QObject* parent)
    : QObject(parent) {
  const QString id = QStringLiteral("closing");
  connect(guard, &CloseGuard::waitingFor, this, [bar, id](const QString& sentence) {
    bar->post({id, RunState::paused, sentence, {}, {}});
  });
  connect(guard, &CloseGuard::stillSaving, this, [bar, id, guard](const QString& sentence) {
    bar->post({id, RunState::degraded, sentence, tr("Stop now"), [guard] { guard->stopNow(); }});
  });
  connect(guard, &CloseGuard::stays, this, [bar, id](const QString& why) {
    bar->withdraw(id);
    if (!why.isEmpty()) bar->post({id, RunState::failed, why, {}, {}});
  });
  QAction* ask_again = actions[Command::askOnClosing];
  const auto show_remembered = [ask_again, guard] { ask_again->setEnabled(guard->remembersAnswer()); };
  connect(guard, &CloseGuard::rememberedChanged, this, show_remembered);
  connect(ask_again, &QAction::triggered, guard, &CloseGuard::forgetAnswer);
  show_remembered();
}

}  // namespace accrue::ui
