// SPDX-License-Identifier: GPL-3.0-or-later
// FieldEditor: the control for one field of the spec table, and its factory by the field's type.
#pragma once

#include <QObject>
#include <QString>

#include "accrue/run/fields/spec_fields.h"

class QWidget;

namespace accrue::ui {

/// Owned by its widget.
class FieldEditor : public QObject {
  Q_OBJECT

 public:
  /// Makes an editor for the field, with a widget named "field.<key>".
  static FieldEditor* create(const SpecField& field, QWidget* parent);

  /// The widget that takes the focus.
  virtual QWidget* widget() const = 0;
  /// Shows the spec's value without signals. Text that already means this value stays as typed.
  virtual void show(const RunSpec& spec) = 0;

 Q_SIGNALS:
  void edited(const accrue::SpecValue& value);
  /// The value is complete: the next edit is a new one.
  void finished();
  /// The typed text is not a valid value; an empty problem: it is valid again.
  void problemChanged(const QString& problem);

 protected:
  using QObject::QObject;
};

}  // namespace accrue::ui
