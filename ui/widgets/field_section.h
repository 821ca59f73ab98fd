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

/// A group of the form: a title that folds it, its basic fields, and the advanced ones behind a line of their own.
class FieldSection : public QWidget {
  Q_OBJECT

 public:
  FieldSection(const QString& name, const QString& title, QWidget* parent = nullptr);

  FieldRow* addField(const SpecField& field);
  /// A command that belongs to the section, as a button beside its title.
  void addTitleAction(QAction* action);
  /// After the last addField.
  void finish(int label_width, int unit_width);
  const std::vector<FieldRow*>& rows() const { return rows_; }
  int labelWidth() const;
  int unitWidth() const;

  void setExpanded(bool expanded);
  bool isExpanded() const;
  void setAdvancedShown(bool shown);
  bool isAdvancedShown() const;
  /// Shows what the spec gives a meaning; with a filter, only those fields, whether advanced or folded. What needs
  /// attention is shown in any fold. To be called again after foldingChanged().
  void arrange(const RunSpec& spec, const std::vector<const SpecField*>* filter);

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
