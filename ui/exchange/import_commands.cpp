// SPDX-License-Identifier: GPL-3.0-or-later
#include "import_commands.h"

#include <QDir>
#include <QWidget>

#include "bundle_exchange.h"
#include "document/spec_files.h"
#include "exchange.h"
#include "kit/actions.h"
#include "kit/file_dialogs.h"
#include "kit/text.h"

namespace accrue::ui {

void connectImportCommands(const Actions& actions, SpecFiles* files, Exchange* exchange, BundleExchange* bundles,
                           FileDialogs* dialogs, QWidget* window) {
  const auto import = [exchange, bundles](const QString& file) {
    hasSuffix(file, ".accrue-bundle") ? bundles->importBundle(file) : exchange->importCurves(file);
  };
  QObject::connect(files, &SpecFiles::importRequested, window, import);
  QObject::connect(actions[Command::importFile], &QAction::triggered, window, [import, dialogs, window] {
    const QString file = dialogs->openFile(window, tr("Import a bundle or a log"), QDir::homePath(),
                                           tr("Bundles and logs of other tools (*.accrue-bundle *.csv *.tsv "
                                              "*.json *.jsonl *.log *.txt *tfevents*);;All files (*)"));
    if (!file.isEmpty()) import(file);
  });
}

}  // namespace accrue::ui
