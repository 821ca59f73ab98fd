// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QPointer>
#include <QString>
#include <functional>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/megatron/plugin_facts.h"
#include "kit/job_runner.h"
#include "live/run_control.h"

class QSettings;
class QWidget;

namespace accrue::ui {

class FileDialogs;
class LibrariesDialog;
class LibraryMemory;
class MessageBar;
class PreflightRunner;
class RunLibrary;
class RunSeries;
class SpecDocument;
class SpecFiles;
struct LibraryQuestion;

/// Choice of plug-in libraries by the user: for the set-up, and for a run whose libraries have moved.
class LibraryDesk : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    SpecDocument* document;
    PreflightRunner* preflight;
    RunControl* control;
    RunLibrary* library;
    SpecFiles* files;
    FileDialogs* dialogs;
    QSettings* settings;
    MessageBar* bar;
    QWidget* window;
  };
  explicit LibraryDesk(const Parts& parts);

  /// Asks for the libraries of the set-up.
  void choose();

 private:
  using Taken = std::function<void(std::vector<PluginFacts>)>;
  void open(LibraryQuestion question, Taken taken);
  void offer(const QString& folder, const std::vector<PluginRecord>& recorded, const Error& error, GoOn wanted);
  void chooseAgain(const QString& folder, const std::vector<PluginRecord>& recorded, GoOn wanted);
  void takeRecorded(const RunSeries& run);

  Parts parts_;
  LibraryMemory* memory_;
  QPointer<LibrariesDialog> dialog_;
  JobRunner jobs_;
};

}  // namespace accrue::ui
