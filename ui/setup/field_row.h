// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/findings.h"
#include "accrue/run/spec_fields.h"

class QAction;
class QGridLayout;
class QLabel;
class QWidget;

namespace accrue::ui {

class FieldEditor;
class FindingNote;

/// One field of the form: label, editor, unit in one row of a grid, its findings in the next.
class FieldRow : public QObject {
  Q_OBJECT

 public:
  FieldRow(const SpecField& field, QGridLayout* grid, QWidget* parent);

  const SpecField& field() const { return field_; }
  QWidget* editorWidget() const;
  QLabel* label() const { return label_; }
  QLabel* unit() const { return unit_; }
  /// Shows the spec's value. Invalid text stays, for the user to correct, unless the spec's value has changed otherwise
  /// than by textRejected().
  void showSpec(const RunSpec& spec);
  /// Shows the spec's value in place of invalid text.
  void discardText(const RunSpec& spec);
  void setFindings(std::vector<Finding> findings);
  /// Has an error or a warning, which must be visible even if the field would be folded away.
  bool needsAttention() const;
  /// The typed text is not a valid value, so the field differs from the spec.
  bool isTextRejected() const { return !problem_.isEmpty(); }
  /// Shown below the field while a search finds it by another tool's name; empty hides it.
  void setFoundAs(const QString& name);
  /// Shown below the field: what it comes to and by what. idle greys the label: the field changes nothing.
  void setRemark(const QString& text, bool idle);
  /// Shown below the field: the edit waits for the next run, and this one has another value. Empty: no edit waits.
  void setWaiting(const std::optional<std::string>& value_of_run);
  bool isWaiting() const { return waits_; }
  /// A control of its own under the field, shown and hidden with it.
  void addBelow(const QString& label, QWidget* control);
  /// The label above the field in place of beside it, for narrow forms.
  void setStacked(bool stacked);
  /// The narrowest width of the field and its unit in a form whose units are so wide.
  int leastWidth(int unit_width) const;
  /// A lock in the field: an edit of it moves another number.
  void setLocked(bool locked);
  /// The value follows from elsewhere and cannot be edited here.
  void setFixed(bool fixed);
  void setVisible(bool visible);
  bool isVisible() const { return visible_; }
  FindingNote* note() const { return note_; }

 Q_SIGNALS:
  void edited(const accrue::SpecField& field, const accrue::SpecValue& value);
  void finished();
  void fixRequested(const accrue::SpecField& field, const QString& value);
  void librariesWanted();
  /// What is being typed is no valid value, or no longer one.
  void textRejected(const accrue::SpecField& field);
  void textRejectedChanged(bool rejected);

 private:
  void showNotes();
  QString toolTip() const;

  const SpecField& field_;
  QGridLayout* grid_;
  int head_;  ///< the first of the row's lines in the grid, for a label above the field
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

/// "gradient_accumulation_steps in Accelerate"
QString aliasText(const FieldAlias& alias);

}  // namespace accrue::ui
