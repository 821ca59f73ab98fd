// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <QPointer>

#include "series/run_series.h"

class QCheckBox;
class QLineEdit;
class QPlainTextEdit;

namespace accrue::ui {

class RunNotebook;

/// Name, tags, star and notes of one run. Edits apply at once.
class RunNotesSheet : public QDialog {
  Q_OBJECT

 public:
  RunNotesSheet(RunNotebook* notebook, QWidget* parent);
  void setRun(RunSeries* run);

 private:
  void keep();

  RunNotebook* notebook_;
  QPointer<RunSeries> run_;
  QLineEdit* name_;
  QLineEdit* tags_;
  QCheckBox* star_;
  QPlainTextEdit* text_;
  bool filling_ = false;
};

}  // namespace accrue::ui
