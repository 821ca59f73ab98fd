// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <optional>

#include "accrue/run/code_export.h"

class QComboBox;
class QLabel;
class QListWidget;
class QPlainTextEdit;
class QPushButton;

namespace accrue::ui {

class Dialogs;
class PreflightRunner;
class SpecDocument;

/// The edited spec as code for another tool: what could not be carried over first, then the text, before anything is
/// saved. It follows the edits. Not modal.
class CodeExportSheet : public QDialog {
  Q_OBJECT

 public:
  CodeExportSheet(SpecDocument* document, PreflightRunner* preflight, Dialogs* dialogs, QWidget* parent);

 private:
  void showCode();
  void save();

  SpecDocument* document_;
  PreflightRunner* preflight_;
  Dialogs* dialogs_;
  QComboBox* target_;
  QLabel* verdict_;
  QListWidget* missing_;
  QPlainTextEdit* text_;
  QPushButton* save_;
  QPushButton* copy_;
  std::optional<CodeExport> code_;
};

}  // namespace accrue::ui
