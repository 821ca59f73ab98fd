// SPDX-License-Identifier: GPL-3.0-or-later
#include "library_memory.h"

#include <QFileInfo>
#include <QSettings>
#include <QStringList>
#include <algorithm>
#include <utility>

#include "document/preflight_runner.h"
#include "document/spec_document.h"

namespace accrue::ui {

namespace {

constexpr auto group = "libraries";

/// Writes "SHA-256 file"; the second function reads it.
QString written(const PluginRecord& library) {
  return QString::fromStdString(library.sha256 + ' ' + library.file);
}

PluginRecord readLibrary(const QString& text) {
  const QString file = text.section(QLatin1Char(' '), 1);
  return {file.toStdString(), QFileInfo(file).fileName().toStdString(),
          text.section(QLatin1Char(' '), 0, 0).toStdString()};
}

}  // namespace

LibraryMemory::LibraryMemory(SpecDocument* document, PreflightRunner* preflight, QSettings* settings, QObject* parent)
    : QObject(parent), document_(document), preflight_(preflight), settings_(settings), opened_(document->opened()) {
  settings_->beginGroup(QLatin1String(group));
  for (const QString& spec : settings_->allKeys())
    for (const QString& library : settings_->value(spec).toStringList())
      chosen_.insert(QString::fromStdString(readLibrary(library).sha256));
  settings_->endGroup();
  connect(document_, &SpecDocument::fileChanged, this, &LibraryMemory::follow);
  connect(preflight_, &PreflightRunner::librariesChosen, this, &LibraryMemory::keep);
}

bool LibraryMemory::knows(const std::vector<PluginRecord>& libraries) const {
  return std::ranges::all_of(libraries, [this](const PluginRecord& library) {
    return !library.sha256.empty() && chosen_.contains(QString::fromStdString(library.sha256));
  });
}

QString LibraryMemory::key() const {
  return QLatin1String(group) + document_->filePath();  // absolute: it begins with a slash
}

/// Another document has its own libraries; one that was saved under another name keeps its own.
void LibraryMemory::follow() {
  if (std::exchange(opened_, document_->opened()) == document_->opened()) return keep();
  std::vector<PluginRecord> libraries;
  if (!document_->filePath().isEmpty())
    for (const QString& library : settings_->value(key()).toStringList()) libraries.push_back(readLibrary(library));
  preflight_->chooseLibraries(std::move(libraries));
}

void LibraryMemory::keep() {
  QStringList libraries;
  for (const PluginRecord& library : preflight_->chosenLibraries()) {
    if (library.sha256.empty()) continue;  // unreadable
    libraries << written(library);
    chosen_.insert(QString::fromStdString(library.sha256));
  }
  if (document_->filePath().isEmpty()) return;
  if (libraries.isEmpty())
    settings_->remove(key());
  else
    settings_->setValue(key(), libraries);
}

}  // namespace accrue::ui
