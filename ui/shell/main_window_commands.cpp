// SPDX-License-Identifier: GPL-3.0-or-later
// The smaller commands of MainWindow: clipboard, help, and the windows beside it.
#include <QApplication>
#include <QClipboard>
#include <QDesktopServices>
#include <QDir>
#include <QGuiApplication>
#include <QMessageBox>
#include <QSettings>
#include <QSysInfo>
#include <QUrl>

#include "accrue/run/run_order.h"
#include "accrue/run/version.h"
#include "centre_page.h"
#include "compare/dialect_panel.h"
#include "compare/iso_batch_panel.h"
#include "kit/message_bar.h"
#include "kit/number_text.h"
#include "live/run_control.h"
#include "live/status_row.h"
#include "main_window.h"
#include "series/run_text.h"
#include "setup/library_probe.h"
#include "setup/preflight_runner.h"
#include "shortcut_sheet.h"
#include "teach/differences_sheet.h"
#include "teach/glossary_sheet.h"
#include "teach/lesson_player.h"
#include "teach/manual_sheet.h"
#include "teach/narrator.h"

namespace accrue::ui {

void MainWindow::openRunFolder(const RunSeries* run) {
  if (run && !run->folder().isEmpty()) QDesktopServices::openUrl(QUrl::fromLocalFile(run->folder()));
}

void MainWindow::copyCommand() {
  const RunSeries* run = focusedRun();
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

void MainWindow::copyReport() {
  const HostFacts& host = parts_.preflight->hostFacts();
  QStringList lines = {
      QStringLiteral("Accrue %1, Qt %2").arg(QLatin1String(version()), QLatin1String(qVersion())),
      QStringLiteral("%1, %2, %3")
          .arg(QSysInfo::prettyProductName(), QSysInfo::kernelVersion(), QGuiApplication::platformName()),
      tr("Cores: %1, memory: %2, %3")
          .arg(QString::number(host.cores), bytesText(host.memory_bytes), QString::fromStdString(host.cpu_name)),
      host.torch_version.empty() ? tr("LibTorch: not found by accrue-rank")
                                 : tr("LibTorch %1").arg(QString::fromStdString(host.torch_version))};
  if (const RunSeries* run = parts_.control->run())
    lines.append(tr("Last run %1: %2, %3").arg(run->folder(), stateWord(run, run->state()), run->progressText()));
  const QString text = lines.join(QLatin1Char('\n'));
  // Shown before it is copied, so that users see what they are about to paste.
  centre_->messages()->post({QStringLiteral("report"), RunState::idle, text, tr("Copy"),
                             [text] { QGuiApplication::clipboard()->setText(text); }});
}

void MainWindow::showAbout() {
  auto* box = new QMessageBox(QMessageBox::NoIcon, tr("About Accrue"),
                              tr("<h3>Accrue %1</h3><p>Distributed training with gradient accumulation, in a window or "
                                 "headless.</p><p>GPL-3.0-or-later; engine and command line Apache-2.0.</p>")
                                  .arg(QLatin1String(version())),
                              QMessageBox::Close, this);
  box->setIconPixmap(windowIcon().pixmap(64, 64));
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->open();
}

void MainWindow::showDialects() {
  if (!dialect_panel_)
    dialect_panel_ = new DialectPanel(parts_.document, dialects_, queue_, actions_.runAllDialects, this);
  dialect_panel_->show();
  dialect_panel_->raise();
  dialect_panel_->activateWindow();
}

void MainWindow::showIsoBatch() {
  if (!iso_panel_)
    iso_panel_ = new IsoBatchPanel(
        parts_.document, products_, product_runs_, queue_, parts_.control, parts_.library,
        [this] { return formHolds(); }, this);
  iso_panel_->show();
  iso_panel_->raise();
  iso_panel_->activateWindow();
}

void MainWindow::showShortcuts() {
  if (!sheet_) sheet_ = new ShortcutSheet(actions_, this);
  sheet_->show();
  sheet_->raise();
  sheet_->activateWindow();
}

void MainWindow::explainFocus() {
  const QString about = focusedWords(QApplication::focusWidget()), help = focusedHelp(QApplication::focusWidget());
  if (about.isEmpty() && help.isEmpty())
    showManual();
  else
    showGlossary(about, help);
}

void MainWindow::showManual() {
  if (!manual_) manual_ = new ManualSheet(this);
  manual_->show();
  manual_->raise();
  manual_->activateWindow();
}

void MainWindow::showGlossary(const QString& about, const QString& help) {
  if (!glossary_) glossary_ = new GlossarySheet(this);
  glossary_->show();
  glossary_->raise();
  glossary_->activateWindow();
  glossary_->openAt(about, help);
}

void MainWindow::showDifferences() {
  if (!differences_) differences_ = new DifferencesSheet(parts_.document, parts_.preflight, this);
  differences_->show();
  differences_->raise();
  differences_->activateWindow();
}

/// The run for people who hear the window, in sentences.
void MainWindow::buildNarrator() {
  auto* narrator = new Narrator(parts_.control, findChild<LessonPlayer*>(), status_->narration(), this);
  connect(actions_.narrate, &QAction::toggled, this, [this, narrator](bool on) {
    narrator->setOn(on);
    parts_.settings->setValue(QStringLiteral("view/narrate"), on);
  });
  actions_.narrate->setChecked(parts_.settings->value(QStringLiteral("view/narrate"), false).toBool());
}

}  // namespace accrue::ui
