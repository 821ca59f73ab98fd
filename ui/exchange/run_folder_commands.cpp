// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_folder_commands.h"

#include <QClipboard>
#include <QDesktopServices>
#include <QDir>
#include <QGuiApplication>
#include <QUrl>

#include "accrue/run/preflight/run_order.h"
#include "document/library_probe.h"
#include "kit/actions.h"
#include "runs/runs_panel.h"
#include "series/run_series.h"

namespace accrue::ui {

RunFolderCommands::RunFolderCommands(const Actions& actions, RunsPanel* runs, QObject* parent)
    : QObject(parent), runs_(runs) {
  connect(actions[Command::runFolder], &QAction::triggered, this, [this] { openFolder(runs_->currentRun()); });
  connect(actions[Command::copyCommand], &QAction::triggered, this, &RunFolderCommands::copyCommand);
  connect(runs_, &RunsPanel::folderRequested, this, &RunFolderCommands::openFolder);
  const auto enable = [this, &actions] {
    for (const Command command : {Command::runFolder, Command::copyCommand})
      actions[command]->setEnabled(runs_->currentRun() != nullptr);
  };
  connect(runs_, &RunsPanel::shownRunsChanged, this, enable);
  enable();
}

void RunFolderCommands::openFolder(const RunSeries* run) {
  if (run && !run->folder().isEmpty()) QDesktopServices::openUrl(QUrl::fromLocalFile(run->folder()));
}

void RunFolderCommands::copyCommand() {
  const RunSeries* run = runs_->currentRun();
  if (!run) return;
  const auto quoted = [](QString path) {
    return QStringLiteral("'%1'").arg(path.replace(QLatin1Char('\''), QLatin1String("'\\''")));
  };
  const QDir folder(run->folder());
  QString command = QStringLiteral("accrue-run run ") + quoted(folder.filePath(QStringLiteral("spec.toml")));
  if (run->spec() && namesLibraries(*run->spec()))
    if (const auto order = read_run_order(folder.filePath(QStringLiteral("plan.json")).toStdString()))
      for (const PluginRecord& library : order->plugins)
        command += QStringLiteral(" --plugin ") + quoted(QString::fromStdString(library.file));
  QGuiApplication::clipboard()->setText(command);
}

}  // namespace accrue::ui
