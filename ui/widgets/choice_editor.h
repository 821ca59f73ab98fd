// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "field_editor.h"

class QCheckBox;
class QComboBox;

namespace accrue::ui {

/// One of the names of an enum, or of yes and no, with what each means in the list; an optional one also offers to
/// leave it to the plan or the dialect.
class ChoiceEditor : public FieldEditor {
  Q_OBJECT

 public:
  ChoiceEditor(const SpecField& field, QWidget* parent);
  QWidget* widget() const override;
  void show(const RunSpec& spec) override;

 private:
  void addNotes();
  /// What is left to the dialect says what the dialect makes of it.
  void showDerived(const RunSpec& spec);

  const SpecField& field_;
  QComboBox* combo_;
};

/// Yes or no.
class SwitchEditor : public FieldEditor {
  Q_OBJECT

 public:
  SwitchEditor(const SpecField& field, QWidget* parent);
  QWidget* widget() const override;
  void show(const RunSpec& spec) override;

 private:
  const SpecField& field_;
  QCheckBox* box_;
};

}  // namespace accrue::ui
