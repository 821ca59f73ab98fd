// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "field_editor.h"
#include "widgets/number_edit.h"

namespace accrue::ui {

/// Editor for integers and reals; an optional one may be empty.
class NumberEditor : public FieldEditor {
  Q_OBJECT

 public:
  NumberEditor(const SpecField& field, QWidget* parent);
  QWidget* widget() const override { return edit_; }
  void show(const RunSpec& spec) override;

 private:
  void takeText();

  const SpecField& field_;
  NumberEdit* edit_;
};

}  // namespace accrue::ui
