// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QSet>
#include <QString>
#include <string>
#include <vector>

#include "accrue/run/megatron/plugin_facts.h"

class QSettings;

namespace accrue::ui {

class PreflightRunner;
class SpecDocument;

/// Memory, in the studio's settings, of each spec file's plug-in libraries, by SHA-256. So each is chosen once. A
/// document without a file keeps its choice while open. Thread: GUI.
class LibraryMemory : public QObject {
  Q_OBJECT

 public:
  LibraryMemory(SpecDocument* document, PreflightRunner* preflight, QSettings* settings, QObject* parent = nullptr);

  /// Whether the user has chosen each of these contents before, for any spec.
  bool knows(const std::vector<PluginRecord>& libraries) const;

 private:
  void follow();
  void keep();
  QString key() const;

  SpecDocument* document_;
  PreflightRunner* preflight_;
  QSettings* settings_;
  quint64 opened_;        ///< the document of the choice
  QSet<QString> chosen_;  ///< SHA-256 of all libraries ever chosen
};

}  // namespace accrue::ui
