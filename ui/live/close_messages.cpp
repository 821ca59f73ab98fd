// SPDX-License-Identifier: GPL-3.0-or-later
#include "close_messages.h"

#include "close_guard.h"
#include "kit/actions.h"
#include "kit/text.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

void connectCloseMessages(const Actions& actions, CloseGuard* guard, MessageBar* bar, QObject* parent) {
  const QString id = QStringLiteral("closing");
  QObject::connect(guard, &CloseGuard::waitingFor, parent, [bar, id](const QString& sentence) {
    bar->post({id, RunState::paused, sentence, {}, {}});
  });
  QObject::connect(guard, &CloseGuard::stillSaving, parent, [bar, id, guard](const QString& sentence) {
    bar->post({id, RunState::degraded, sentence, tr("Stop now"), [guard] { guard->stopNow(); }});
  });
  QObject::connect(guard, &CloseGuard::stays, parent, [bar, id](const QString& why) {
    bar->withdraw(id);
    if (!why.isEmpty()) bar->post({id, RunState::failed, why, {}, {}});
  });
  QAction* ask_again = actions[Command::askOnClosing];
  const auto show_remembered = [ask_again, guard] { ask_again->setEnabled(guard->remembersAnswer()); };
  QObject::connect(guard, &CloseGuard::rememberedChanged, parent, show_remembered);
  QObject::connect(ask_again, &QAction::triggered, guard, &CloseGuard::forgetAnswer);
  show_remembered();
}

}  // namespace accrue::ui
