// SPDX-License-Identifier: GPL-3.0-or-later
#include "file_commands.h"

#include <QMenu>

#include "document/spec_files.h"
#include "kit/actions.h"
#include "kit/text.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

void connectFileCommands(const Actions& actions, SpecFiles* files, MessageBar* bar, QMainWindow* window) {
  QObject::connect(actions[Command::newSpec], &QAction::triggered, files, &SpecFiles::newSpec);
  QObject::connect(actions[Command::open], &QAction::triggered, files, &SpecFiles::askAndOpen);
  QObject::connect(actions[Command::openRun], &QAction::triggered, files, &SpecFiles::askAndOpenRun);
  QObject::connect(actions[Command::save], &QAction::triggered, files, &SpecFiles::save);
  QObject::connect(actions[Command::saveAs], &QAction::triggered, files, &SpecFiles::saveAs);
  auto* recent = window->findChild<QMenu*>(QStringLiteral("recentMenu"));
  QObject::connect(recent, &QMenu::aboutToShow, files, [files, recent] { files->fillRecentMenu(recent); });
  auto* presets = window->findChild<QMenu*>(QStringLiteral("presetMenu"));
  QObject::connect(presets, &QMenu::aboutToShow, files, [files, presets] { files->fillPresetMenu(presets); });
  QObject::connect(files, &SpecFiles::failed, window, [bar](const QString& text) {
    bar->post({QStringLiteral("file"), RunState::failed, text, {}, {}});
  });
  QObject::connect(files, &SpecFiles::editsSetAside, window, [files, bar](const QString& name) {
    bar->post({QStringLiteral("setAside"),
               RunState::idle,
               tr("The edits of %1 were set aside").arg(name),
               tr("Bring them back"),
               [files] { files->bringBack(); },
               {},
               QStringLiteral("undo")});
  });
  QObject::connect(files, &SpecFiles::setAsideOver, window, [bar] { bar->withdraw(QStringLiteral("setAside")); });
}

}  // namespace accrue::ui
