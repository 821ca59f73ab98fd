// SPDX-License-Identifier: GPL-3.0-or-later
// NumberEdit: a spin box for the numbers of specs: 64-bit counts and reals over many decades ("3e-4"), in the C locale
// of the spec file. It accepts any text during typing and reports problems; it never silently rounds or clamps.
#pragma once

#include <QAbstractSpinBox>
#include <QString>
#include <optional>

#include "accrue/run/fields/spec_fields.h"

namespace accrue::ui {

class NumberEdit : public QAbstractSpinBox {
  Q_OBJECT
  // Assistive technology reads and sets a spin box's number by these names.
  Q_PROPERTY(double value READ number WRITE setNumber)
  Q_PROPERTY(double minimum READ minimum CONSTANT)
  Q_PROPERTY(double maximum READ maximum CONSTANT)

 public:
  explicit NumberEdit(const SpecField& field, QWidget* parent = nullptr);

  /// Shows a value without signals; monostate shows an empty field.
  void setValue(const SpecValue& value);
  /// The number in the text; empty unless it is in range.
  std::optional<SpecValue> value() const;
  /// Reason why value() is empty, as a sentence; else empty.
  QString problem() const;
  void setPlaceholder(const QString& text);

  QValidator::State validate(QString& text, int& pos) const override;
  void stepBy(int steps) override;
  /// Wide enough for the digits of most numbers.
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  /// The user changed the text.
  void textEdited();

 protected:
  StepEnabled stepEnabled() const override;

 private:
  std::optional<SpecValue> parse(const QString& text, QString* problem) const;
  double stepped(double value, int steps) const;
  bool inRange(double value) const;
  QString rangeText() const;
  QString boundText(double bound) const;

  /// Returns 0 if the text is not a number.
  double number() const;
  void setNumber(double number);
  double minimum() const { return field_.minimum; }
  double maximum() const { return field_.maximum; }

  const SpecField& field_;
  bool showing_ = false;  ///< the text is being set from the spec
};

}  // namespace accrue::ui
