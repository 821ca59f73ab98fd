// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QObject>
#include <QPointer>
#include <atomic>
#include <functional>
#include <memory>

#include "bridge/job_runner.h"

class QWidget;

namespace accrue::ui {

class CodeExportSheet;
class Dialogs;
class MessageBar;
class PreflightRunner;
class RunLibrary;
class RunSeries;
class SpecDocument;
struct WindowActions;

/// What Exchange uses; all outlive it.
struct ExchangeParts {
  SpecDocument* document = nullptr;
  PreflightRunner* preflight = nullptr;
  RunLibrary* library = nullptr;
  Dialogs* dialogs = nullptr;
  MessageBar* messages = nullptr;
  QWidget* window = nullptr;
  std::function<RunSeries*()> focused_run;
};

/// Specs and records to other tools, and their records in: the sheet of code, Chrome traces, TensorBoard's event files.
/// Files are read and written in the background; the message bar shows how far that is, and cancels it.
class Exchange : public QObject {
  Q_OBJECT

 public:
  Exchange(const ExchangeParts& parts, const WindowActions& actions);
  ~Exchange() override;

 private:
  /// True once the job is to end early: cancelled in the message bar, or the window closes.
  using GivenUp = std::shared_ptr<std::atomic_bool>;

  void showCode();
  void exportTrace();
  void exportScalars();
  void importLog();
  void readLog(const QString& folder, const QString& loss);
  void say(const QString& text, bool failed);
  /// A job from its first message to its last; end() tells whether it was cancelled. Jobs follow each other.
  GivenUp begin();
  void showProgress(const GivenUp& given_up, const QString& text);
  bool end(const GivenUp& given_up);

  ExchangeParts parts_;
  QPointer<CodeExportSheet> sheet_;
  QList<GivenUp> under_way_;
  JobRunner jobs_;
};

}  // namespace accrue::ui
