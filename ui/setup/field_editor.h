// SPDX-License-Identifier: GPL-3.0-or-later
// FieldEditor: the control by which a form edits one field of the spec table, and its factory by the field's type.
#pragma once

#include <QObject>
#include <QString>

#include "accrue/run/spec_fields.h"

class QWidget;

namespace accrue::ui {

/// The editor is owned by its widget.
class FieldEditor : public QObject {
  Q_OBJECT

 public:
  /// An editor for the field, its widget named "field.<key>".
  static FieldEditor* create(const SpecField& field, QWidget* parent);

  /// What takes the focus.
  virtual QWidget* widget() const = 0;
  /// Shows the spec's value without signals. Text that already means this value is left as it was typed.
  virtual void show(const RunSpec& spec) = 0;

 Q_SIGNALS:
  void edited(const accrue::SpecValue& value);
  /// The value is whole: what is edited next is another edit.
  void finished();
  /// The typed text is not a valid value; an empty problem: it is again.
  void problemChanged(const QString& problem);

 protected:
  using QObject::QObject;
};

}  // namespace accrue::ui
