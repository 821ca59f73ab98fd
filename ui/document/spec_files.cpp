// SPDX-License-Identifier: GPL-3.0-or-later
#include "spec_files.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QMenu>
#include <QSettings>
#include <QWidget>
#include <utility>

#include "accrue/run/fields/spec_io.h"
#include "accrue/run/megatron/megatron_lowering.h"
#include "runs/run_library.h"
#include "spec_dialogs.h"
#include "spec_document.h"

namespace accrue::ui {

namespace {

constexpr auto recent_key = "files/recent";
constexpr auto folder_key = "files/folder";

QString textOf(const std::vector<Finding>& findings) {
  QStringList lines;
  for (const Finding& finding : findings)
    if (finding.severity == Severity::error) lines.append(QString::fromStdString(finding.text()));
  if (lines.size() > 5)
    lines = lines.mid(0, 5) << SpecFiles::tr("and %n more", nullptr, static_cast<int>(lines.size()) - 5);
  return lines.join(QLatin1Char('\n'));
}

}  // namespace

SpecFiles::SpecFiles(SpecDocument* document, RunLibrary* library, SpecDialogs* dialogs, QSettings* settings,
                     QWidget* window)
    : QObject(window), document_(document), library_(library), dialogs_(dialogs), settings_(settings), window_(window) {
  connect(document_, &SpecDocument::fileChanged, this, [this] {
    built_in_ = false;
    if (!std::exchange(replacing_, false)) Q_EMIT setAsideOver();
  });
}

bool SpecFiles::mayReplace() {
  if (!document_->isModified()) return true;
  if (built_in_) {
    set_aside_ = {document_->spec(), document_->displayName(), document_->sampleLock()};
    replacing_ = true;
    Q_EMIT editsSetAside(set_aside_.name);
    return true;
  }
  switch (dialogs_->askUnsaved(window_, document_->displayName())) {
    case UnsavedAnswer::save:
      return save();
    case UnsavedAnswer::discard:
      return true;
    case UnsavedAnswer::cancel:
      break;
  }
  return false;
}

void SpecFiles::bringBack() {
  const SetAside edits = set_aside_;  // replacing the document may set other edits aside
  if (!mayReplace()) return;
  document_->restore(edits.spec, edits.name, {}, {});
  document_->setSampleLock(edits.lock);
  built_in_ = true;
  Q_EMIT documentOpened();
}

void SpecFiles::newSpec() {
  if (!mayReplace()) return;
  document_->reset(RunSpec{}, tr("Untitled"));
  Q_EMIT documentOpened();
}

bool SpecFiles::openDemo() {
  return openPreset(QStringLiteral("demo.accrue"), tr("Demo"));
}

bool SpecFiles::openPreset(const QString& resource, const QString& name) {
  if (!mayReplace()) return false;
  QFile file(QStringLiteral(":/presets/%1").arg(resource));
  if (!file.open(QIODevice::ReadOnly)) {
    Q_EMIT failed(tr("The built-in %1 is missing from this build.").arg(resource));
    return false;
  }
  const SpecReading reading = parse_spec(file.readAll().toStdString(), resource.toStdString());
  if (!reading.ok()) {
    Q_EMIT failed(textOf(reading.findings));
    return false;
  }
  document_->reset(reading.spec, name);
  built_in_ = true;
  Q_EMIT documentOpened();
  return true;
}

bool SpecFiles::openText(const QString& text, const QString& name) {
  const SpecReading reading = parse_spec(text.toStdString(), name.toStdString());
  if (!reading.ok()) {
    Q_EMIT failed(textOf(reading.findings));
    return false;
  }
  if (!mayReplace()) return false;
  document_->reset(reading.spec, name);
  Q_EMIT documentOpened();
  return true;
}

void SpecFiles::askAndOpen() {
  const QString path = dialogs_->openSpec(window_, lastFolder());
  if (!path.isEmpty()) openPath(path);
}

void SpecFiles::askAndOpenRun() {
  const QString path = dialogs_->openRunFolder(window_, library_->runsDir());
  if (!path.isEmpty()) openPath(path);
}

void SpecFiles::openPath(const QString& path) {
  if (QFileInfo(path).isDir()) {
    library_->open(path);
    return;
  }
  if (hasSuffix(path, ".accrue-lesson")) {
    Q_EMIT lessonRequested(path);
    return;
  }
  if (hasSuffix(path, ".accrue-bundle") || hasSuffix(path, ".csv") || hasSuffix(path, ".tsv")) {
    Q_EMIT importRequested(path);
    return;
  }
  // Read before asking: edits must not be discarded for a file that cannot be opened.
  if (const auto read = read_spec(path.toStdString()); has_errors(read.findings)) {
    Q_EMIT failed(textOf(read.findings));
    return;
  }
  if (!mayReplace()) return;
  const std::vector<Finding> findings = document_->open(path);
  if (has_errors(findings)) {
    Q_EMIT failed(textOf(findings));
    return;
  }
  remember(path);
  Q_EMIT documentOpened();
}

void SpecFiles::load(const RunSeries& run) {
  take(run, run.givenName());
}

void SpecFiles::clone(const RunSeries& run) {
  take(run, tr("Copy of %1").arg(run.givenName()));
}

void SpecFiles::take(const RunSeries& run, const QString& name) {
  if (!run.spec()) return;
  if (!document_->lockedKeys().holder.isEmpty()) {
    document_->setSpec(without_lowered(*run.spec()), tr("Use the spec of %1").arg(run.name()));
    return;
  }
  if (!mayReplace()) return;
  const std::filesystem::path base =
      run.plan() ? run.plan()->base_dir : std::filesystem::path(run.folder().toStdString());
  document_->reset(*run.spec(), name, base);
  Q_EMIT runTaken(run);
  Q_EMIT documentOpened();
}

bool SpecFiles::save() {
  if (document_->filePath().isEmpty()) return saveAs();
  if (const auto saved = document_->save(); !saved) {
    Q_EMIT failed(QString::fromStdString(saved.error().text()));
    return false;
  }
  remember(document_->filePath());
  return true;
}

bool SpecFiles::saveAs() {
  const QString suggested = document_->filePath().isEmpty()
                                ? QDir(lastFolder()).filePath(QStringLiteral("%1.accrue").arg(document_->displayName()))
                                : document_->filePath();
  const QString path = dialogs_->saveSpec(window_, suggested);
  if (path.isEmpty()) return false;
  if (const auto saved = document_->saveAs(path); !saved) {
    Q_EMIT failed(QString::fromStdString(saved.error().text()));
    return false;
  }
  remember(path);
  return true;
}

QStringList SpecFiles::recentFiles() const {
  return settings_->value(QLatin1String(recent_key)).toStringList();
}

void SpecFiles::remember(const QString& path) {
  const QString absolute = QFileInfo(path).absoluteFilePath();
  QStringList files = recentFiles();
  files.removeAll(absolute);
  files.prepend(absolute);
  settings_->setValue(QLatin1String(recent_key), QStringList(files.mid(0, recent_limit)));
  settings_->setValue(QLatin1String(folder_key), QFileInfo(absolute).absolutePath());
  Q_EMIT recentChanged();
}

QString SpecFiles::lastFolder() const {
  return settings_->value(QLatin1String(folder_key), QDir::homePath()).toString();
}

void SpecFiles::fillPresetMenu(QMenu* menu) {
  menu->clear();
  for (const QString& resource : QDir(QStringLiteral(":/presets")).entryList({QStringLiteral("*.accrue")})) {
    QFile file(QStringLiteral(":/presets/%1").arg(resource));
    if (!file.open(QIODevice::ReadOnly)) continue;
    const SpecReading reading = parse_spec(file.readAll().toStdString(), resource.toStdString());
    QString name = QString::fromStdString(reading.spec.run.name);
    if (name.isEmpty()) name = QFileInfo(resource).completeBaseName();
    QAction* action = menu->addAction(name);
    action->setObjectName(QStringLiteral("presetAction.%1").arg(resource));
    connect(action, &QAction::triggered, this, [this, resource, name] { openPreset(resource, name); });
  }
}

void SpecFiles::fillRecentMenu(QMenu* menu) {
  menu->clear();
  for (const QString& file : recentFiles()) {
    QAction* action = menu->addAction(QFileInfo(file).fileName());
    action->setToolTip(file);
    action->setStatusTip(file);
    // A file that no longer exists is shown but disabled.
    action->setEnabled(QFileInfo::exists(file));
    connect(action, &QAction::triggered, this, [this, file] { openPath(file); });
  }
  if (menu->isEmpty()) menu->addAction(tr("None yet"))->setEnabled(false);
}

}  // namespace accrue::ui
