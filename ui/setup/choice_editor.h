// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "field_editor.h"

class QCheckBox;
class QComboBox;

namespace accrue::ui {

/// Editor that chooses a name of an enum, or yes or no, with the meaning of each in the list; an optional field can
/// also leave the choice to the plan or the dialect.
class ChoiceEditor : public FieldEditor {
  Q_OBJECT

 public:
  ChoiceEditor(const SpecField& field, QWidget* parent);
  QWidget* widget() const override;
  void show(const RunSpec& spec) override;

 private:
  void addNotes();
  /// Makes the entry for "as the dialect" also show the dialect's value.
  void showDerived(const RunSpec& spec);

  const SpecField& field_;
  QComboBox* combo_;
};

/// Editor for yes or no.
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
