// SPDX-License-Identifier: GPL-3.0-or-later
// What MainWindow lends to exports and imports.
#include <QDir>

#include "centre_page.h"
#include "dialogs.h"
#include "exchange/bundle_exchange.h"
#include "exchange/exchange.h"
#include "exchange/exchange_jobs.h"
#include "main_window.h"
#include "runs/runs_panel.h"
#include "series/run_series.h"
#include "setup/spec_files.h"

namespace accrue::ui {

void MainWindow::buildExchange() {
  auto* exchange = new Exchange({parts_.document, parts_.preflight, parts_.library, parts_.dialogs, centre_->messages(),
                                 exchange_jobs_, this, [this] { return focusedRun(); }},
                                actions_);
  connect(runs_, &RunsPanel::shownRunsChanged, exchange, &Exchange::noteFocus);
  auto* bundles = new BundleExchange({.document = parts_.document,
                                      .library = parts_.library,
                                      .notebook = runs_->notebook(),
                                      .files = files_,
                                      .dialogs = parts_.dialogs,
                                      .messages = centre_->messages(),
                                      .jobs = exchange_jobs_,
                                      .window = this,
                                      .chosen_runs =
                                          [this] {
                                            const QList<RunSeries*> selected = runs_->selectedRuns();
                                            return selected.size() > 1 ? selected : runs_->shownRuns();
                                          }},
                                     actions_);
  const auto import = [exchange, bundles](const QString& file) {
    hasSuffix(file, ".accrue-bundle") ? bundles->importBundle(file) : exchange->importCurves(file);
  };
  connect(files_, &WindowFiles::importRequested, this, import);
  connect(actions_.importFile, &QAction::triggered, this, [this, import] {
    const QString file = parts_.dialogs->openFile(this, tr("Import a bundle or a log"), QDir::homePath(),
                                                  tr("Bundles and logs of other tools (*.accrue-bundle *.csv *.tsv "
                                                     "*.json *.jsonl *.log *.txt *tfevents*);;All files (*)"));
    if (!file.isEmpty()) import(file);
  });
}

}  // namespace accrue::ui
