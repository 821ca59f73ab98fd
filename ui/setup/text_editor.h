// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "field_editor.h"

class QLineEdit;

namespace accrue::ui {

/// Editor for text, and for lists and matrices as the spec file writes them. A path also has a browse button.
class TextEditor : public FieldEditor {
  Q_OBJECT

 public:
  TextEditor(const SpecField& field, QWidget* parent);
  QWidget* widget() const override;
  void show(const RunSpec& spec) override;

 private:
  QString textOf(const SpecValue& value) const;
  QString listText(const QString& text) const;
  void takeText(const QString& text);
  void browse();

  const SpecField& field_;
  QLineEdit* edit_;
  RunSpec shown_;
  bool showing_ = false;   ///< the text is being set from the spec
  bool rejected_ = false;  ///< the text is not a valid value
};

}  // namespace accrue::ui
