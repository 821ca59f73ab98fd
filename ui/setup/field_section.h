// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

#include "field_row.h"

class QAction;
class QGridLayout;
class QHBoxLayout;

namespace accrue::ui {

class FoldButton;

/// A group of the form: a title that folds it, its basic fields, and the advanced ones in a second fold.
class FieldSection : public QWidget {
  Q_OBJECT

 public:
  FieldSection(const QString& name, const QString& title, QWidget* parent = nullptr);

  FieldRow* addField(const SpecField& field);
  /// Adds a command of the section, as a button beside its title.
  void addTitleAction(QAction* action);
  /// Sets the columns of the form: widths of labels and units, and whether labels are above their fields.
  void setColumns(int label_width, int unit_width, bool stacked);
  const std::vector<FieldRow*>& rows() const { return rows_; }
  int labelWidth() const;
  int unitWidth() const;
  /// Minimum width of the title's line.
  int titleWidth() const;
  /// Minimum width of the shown fields, without their labels.
  int fieldsWidth(int unit_width) const;

  void setExpanded(bool expanded);
  bool isExpanded() const;
  /// Shows "2 for the next run" beside the title while its fields have such edits.
  void showWaiting();
  void setAdvancedShown(bool shown);
  bool isAdvancedShown() const;
  /// Shows the fields that apply to the spec, and any field that needs attention; with a filter, only matching ones,
  /// including advanced ones. `unfolds`: also those of a folded group. Call again after foldingChanged().
  void arrange(const RunSpec& spec, const std::vector<const SpecField*>* filter, bool unfolds);

 Q_SIGNALS:
  void foldingChanged();

 private:
  FoldButton* title_;
  QHBoxLayout* head_;
  QWidget* body_;
  QGridLayout* grid_;
  FoldButton* more_ = nullptr;
  std::vector<FieldRow*> rows_;
};

}  // namespace accrue::ui
