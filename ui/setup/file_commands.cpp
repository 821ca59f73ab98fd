// SPDX-License-Identifier: GPL-3.0-or-later
#include "file_commands.h"

#include <QMenu>

#include "document/spec_files.h"
#include "kit/actions.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

FileCommands::FileCommands(const Actions& actions, SpecFiles* files, MessageBar* bar, QMainWindow* window)
    : QObject(window) {
  connect(actions[Command::newSpec], &QAction::triggered, files, &SpecFiles::newSpec);
  connect(actions[Command::open], &QAction::triggered, files, &SpecFiles::askAndOpen);
  connect(actions[Command::openRun], &QAction::triggered, files, &SpecFiles::askAndOpenRun);
  connect(actions[Command::save], &QAction::triggered, files, &SpecFiles::save);
  connect(actions[Command::saveAs], &QAction::triggered, files, &SpecFiles::saveAs);
  auto* recent = window->findChild<QMenu*>(QStringLiteral("recentMenu"));
  connect(recent, &QMenu::aboutToShow, files, [files, recent] { files->fillRecentMenu(recent); });
  auto* presets = window->findChild<QMenu*>(QStringLiteral("presetMenu"));
  connect(presets, &QMenu::aboutToShow, files, [files, presets] { files->fillPresetMenu(presets); });
  connect(files, &SpecFiles::failed, this, [bar](const QString& text) {
    bar->post({QStringLiteral("file"), RunState::failed, text, {}, {}});
  });
  connect(files, &SpecFiles::editsSetAside, this, [files, bar](const QString& name) {
    bar->post({QStringLiteral("setAside"),
               RunState::idle,
               tr("The edits of %1 were set aside").arg(name),
               tr("Bring them back"),
               [files] { files->bringBack(); },
               {},
               QStringLiteral("undo")});
  });
  connect(files, &SpecFiles::setAsideOver, this, [bar] { bar->withdraw(QStringLiteral("setAside")); });
}

}  // namespace accrue::ui
