// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QPointer>
#include <QString>
#include <QStringList>
#include <functional>

class QWidget;

namespace accrue::ui {

class CodeExportSheet;
class FileDialogs;
class ExchangeJobs;
class MessageBar;
class PreflightRunner;
class RunLibrary;
class RunSeries;
class SpecDocument;
struct WindowActions;

/// Dependencies of Exchange; all outlive it.
struct ExchangeParts {
  SpecDocument* document = nullptr;
  PreflightRunner* preflight = nullptr;
  RunLibrary* library = nullptr;
  FileDialogs* dialogs = nullptr;
  MessageBar* messages = nullptr;
  ExchangeJobs* jobs = nullptr;
  QWidget* window = nullptr;
  std::function<RunSeries*()> focused_run;
};

/// Specs and records to other tools, and curves from them: the sheet of code, Chrome traces, TensorBoard's event files,
/// logs. Files are read and written in the background.
class Exchange : public QObject {
  Q_OBJECT

 public:
  Exchange(const ExchangeParts& parts, const WindowActions& actions);

  /// Imports the curves of another tool's log, a file or a folder, as runs.
  void importCurves(const QString& from) { readCurves(from, {}, {}); }
  /// Call when the focus may have moved to another run.
  void noteFocus();

 private:
  void showCode();
  void exportTrace();
  void exportScalars();
  void importLog();
  /// step, losses: the user's answers so far. Each question offers only its own choices, so the sequence ends.
  void readCurves(const QString& from, const QString& step, const QStringList& losses);
  void say(const QString& text, bool failed);

  ExchangeParts parts_;
  QPointer<CodeExportSheet> sheet_;
  const RunSeries* focused_ = nullptr;  ///< only compared
  bool form_is_newer_ = false;          ///< the form was edited after that run got the focus
};

}  // namespace accrue::ui
