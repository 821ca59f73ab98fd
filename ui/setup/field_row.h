// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/spec_fields.h"

class QAction;
class QGridLayout;
class QLabel;
class QWidget;

namespace accrue::ui {

class FieldEditor;
class FindingNote;

/// One field of the form: label, editor and unit in one row of a grid, findings in the next.
class FieldRow : public QObject {
  Q_OBJECT

 public:
  FieldRow(const SpecField& field, QGridLayout* grid, QWidget* parent);

  const SpecField& field() const { return field_; }
  QWidget* editorWidget() const;
  QLabel* label() const { return label_; }
  QLabel* unit() const { return unit_; }
  /// Shows the spec's value. Invalid text stays for correction, unless the spec's value has changed other than by
  /// textRejected().
  void showSpec(const RunSpec& spec);
  /// Replaces invalid text by the spec's value.
  void discardText(const RunSpec& spec);
  void setFindings(std::vector<Finding> findings);
  /// Whether it has an error or a warning, which must be visible even in a folded section.
  bool needsAttention() const;
  /// Whether the typed text is invalid, so that the field differs from the spec.
  bool isTextRejected() const { return !problem_.isEmpty(); }
  /// Shown below the field while a search finds it by another tool's name; empty hides it.
  void setFoundAs(const QString& name);
  /// Shown below the field: its effective value and the origin. idle greys the label, because the field has no effect.
  void setRemark(const QString& text, bool idle);
  /// Shown below the field: the edit is for the next run, and the current one has another value. Empty: no such edit.
  void setWaiting(const std::optional<std::string>& value_of_run);
  bool isWaiting() const { return waits_; }
  /// Adds a control under the field, shown and hidden with it.
  void addBelow(const QString& label, QWidget* control);
  /// Puts the label above the field instead of beside it, for narrow forms.
  void setStacked(bool stacked);
  /// Minimum width of the field with its unit, if all units have this width.
  int leastWidth(int unit_width) const;
  /// Shows a lock in the field: an edit of it changes another number.
  void setLocked(bool locked);
  /// Marks the value as derived, and not editable here.
  void setFixed(bool fixed);
  void setVisible(bool visible);
  bool isVisible() const { return visible_; }
  FindingNote* note() const { return note_; }

 Q_SIGNALS:
  void edited(const accrue::SpecField& field, const accrue::SpecValue& value);
  void finished();
  void fixRequested(const accrue::SpecField& field, const QString& value);
  void librariesWanted();
  /// The typed text is not, or no longer, a valid value.
  void textRejected(const accrue::SpecField& field);
  void textRejectedChanged(bool rejected);

 private:
  void showNotes();
  QString toolTip() const;

  const SpecField& field_;
  QGridLayout* grid_;
  int head_;  ///< first grid line of the row, for a label above the field
  QLabel* label_;
  FieldEditor* editor_;
  QLabel* unit_;
  FindingNote* note_;
  QLabel* found_as_;
  QLabel* remark_;
  QLabel* waiting_;
  QLabel* below_label_ = nullptr;
  QWidget* below_ = nullptr;
  QAction* lock_ = nullptr;
  std::vector<Finding> findings_;
  QString problem_;
  SpecValue shown_;         ///< the spec's value that was shown last
  bool rejecting_ = false;  ///< textRejected() is being handled
  bool visible_ = true;
  bool stacked_ = false;
  bool waits_ = false;
};

/// Returns for example "gradient_accumulation_steps in Accelerate".
QString aliasText(const FieldAlias& alias);

}  // namespace accrue::ui
