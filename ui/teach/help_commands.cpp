// SPDX-License-Identifier: GPL-3.0-or-later
#include "help_commands.h"

#include <QApplication>
#include <QClipboard>
#include <QMessageBox>
#include <QSysInfo>

#include "accrue/run/base/version.h"
#include "differences_sheet.h"
#include "document/preflight_runner.h"
#include "glossary_sheet.h"
#include "kit/actions.h"
#include "kit/number_text.h"
#include "kit/raise.h"
#include "live/run_control.h"
#include "manual_sheet.h"
#include "series/run_text.h"
#include "shortcut_sheet.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

HelpCommands::HelpCommands(const Actions& actions, const Parts& parts, QMainWindow* window)
    : QObject(window), actions_(actions), parts_(parts), window_(window) {
  connect(actions_[Command::help], &QAction::triggered, this, &HelpCommands::explainFocus);
  connect(actions_[Command::manual], &QAction::triggered, this, &HelpCommands::showManual);
  connect(actions_[Command::glossary], &QAction::triggered, this, [this] { showGlossary({}, {}); });
  connect(actions_[Command::shortcuts], &QAction::triggered, this, &HelpCommands::showShortcuts);
  connect(actions_[Command::differences], &QAction::triggered, this, &HelpCommands::showDifferences);
  connect(actions_[Command::copyReport], &QAction::triggered, this, &HelpCommands::showReport);
  connect(actions_[Command::about], &QAction::triggered, this, &HelpCommands::showAbout);
}

void HelpCommands::explainFocus() {
  const QWidget* focus = QApplication::focusWidget();
  const QString about = focusedWords(focus);
  const QString help = focusedHelp(focus);
  about.isEmpty() && help.isEmpty() ? showManual() : showGlossary(about, help);
}

void HelpCommands::showManual() {
  if (!manual_) manual_ = new ManualSheet(window_);
  raiseWindow(manual_);
}

void HelpCommands::showGlossary(const QString& about, const QString& help) {
  if (!glossary_) glossary_ = new GlossarySheet(window_);
  raiseWindow(glossary_);
  glossary_->openAt(about, help);
}

void HelpCommands::showShortcuts() {
  if (!shortcuts_) shortcuts_ = new ShortcutSheet(actions_, window_);
  raiseWindow(shortcuts_);
}

void HelpCommands::showDifferences() {
  if (!differences_) differences_ = new DifferencesSheet(parts_.document, parts_.preflight, window_);
  raiseWindow(differences_);
}

/// Shown before it is copied, so that users see what they are about to paste.
void HelpCommands::showReport() {
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
  parts_.bar->post({QStringLiteral("report"), RunState::idle, text, tr("Copy"),
                    [text] { QGuiApplication::clipboard()->setText(text); }});
}

void HelpCommands::showAbout() {
  auto* box = new QMessageBox(QMessageBox::NoIcon, tr("About Accrue"),
                              tr("<h3>Accrue %1</h3><p>Distributed training with gradient accumulation, in a window or "
                                 "headless.</p><p>GPL-3.0-or-later; engine and command line Apache-2.0.</p>")
                                  .arg(QLatin1String(version())),
                              QMessageBox::Close, window_);
  box->setIconPixmap(window_->windowIcon().pixmap(64, 64));
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->open();
}

}  // namespace accrue::ui
