// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <QPointer>
#include <optional>

#include "accrue/run/export/code_export.h"

class QComboBox;
class QLabel;
class QListWidget;
class QPlainTextEdit;
class QPushButton;

namespace accrue::ui {

class FileDialogs;
class PreflightRunner;
class RunSeries;
class SpecDocument;

/// The set-up in the form, or the focused run, as code for another tool: first the choice of the two, then the settings
/// that cannot be exported, then the text, before anything is saved. It follows edits of the form. Not modal.
class CodeExportSheet : public QDialog {
  Q_OBJECT

 public:
  CodeExportSheet(SpecDocument* document, PreflightRunner* preflight, FileDialogs* dialogs, QWidget* parent);

  /// Offers this run beside the form; nullptr, or a run without a plan: the form alone. choose: selects the run, else
  /// the form.
  void offer(RunSeries* run, bool choose);
  /// Whether the run is exported, not the form.
  bool isOfRun() const;

 private:
  void showCode();
  void save();

  SpecDocument* document_;
  PreflightRunner* preflight_;
  FileDialogs* dialogs_;
  QPointer<RunSeries> run_;
  QComboBox* source_;
  QComboBox* target_;
  QLabel* verdict_;
  QListWidget* missing_;
  QPlainTextEdit* text_;
  QPushButton* save_;
  QPushButton* copy_;
  std::optional<CodeExport> code_;
};

}  // namespace accrue::ui
