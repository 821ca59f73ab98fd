// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QPointer>
#include <QString>
#include <QStringList>

class QWidget;

namespace accrue::ui {

class CodeExportSheet;
class FileDialogs;
class ExchangeJobs;
class MessageBar;
class PreflightRunner;
class RunLibrary;
class RunSeries;
class RunsPanel;
class SpecDocument;
class Actions;

/// Dependencies of Exchange; all outlive it.
struct ExchangeParts {
  SpecDocument* document = nullptr;
  PreflightRunner* preflight = nullptr;
  RunLibrary* library = nullptr;
  FileDialogs* dialogs = nullptr;
  MessageBar* messages = nullptr;
  ExchangeJobs* jobs = nullptr;
  QWidget* window = nullptr;
  RunsPanel* runs = nullptr;
};

/// Specs, records and weights to other tools, and curves from them: the sheet of code, Chrome traces, TensorBoard's
/// event files, Hugging Face's layout, logs. Files are read and written in the background.
class Exchange : public QObject {
  Q_OBJECT

 public:
  Exchange(const ExchangeParts& parts, const Actions& actions);

  /// Imports the curves of another tool's log, a file or a folder, as runs.
  void importCurves(const QString& from) { readCurves(from, {}, {}); }

 private:
  /// The focus may have gone to another run.
  void noteFocus();
  /// Enables what the focused run has something for.
  void showEnabled(const Actions& actions);
  void showCode();
  void exportTrace();
  void exportScalars();
  void exportWeights();
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
