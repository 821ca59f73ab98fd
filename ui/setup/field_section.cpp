// SPDX-License-Identifier: GPL-3.0-or-later
#include "field_section.h"

#include <QAction>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "kit/theme.h"
#include "widgets/fold_button.h"

namespace accrue::ui {

FieldSection::FieldSection(const QString& name, const QString& title, QWidget* parent)
    : QWidget(parent),
      title_(new FoldButton(QStringLiteral("section.%1").arg(name), title, this)),
      head_(new QHBoxLayout),
      body_(new QWidget(this)),
      grid_(new QGridLayout(body_)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, space::inGroup);
  layout->setSpacing(space::base);
  head_->addWidget(title_);
  layout->addLayout(head_);
  layout->addWidget(body_);
  title_->setFont(textFont(TextSize::body, QFont::DemiBold));
  title_->setChecked(true);
  grid_->setContentsMargins(0, 0, 0, 0);
  grid_->setHorizontalSpacing(space::inGroup);
  grid_->setVerticalSpacing(space::base);
  grid_->setColumnStretch(1, 1);
  connect(title_, &QAbstractButton::toggled, this, &FieldSection::foldingChanged);
}

void FieldSection::addTitleAction(QAction* action) {
  auto* button = new QToolButton(this);
  button->setObjectName(QStringLiteral("%1.%2").arg(title_->objectName(), action->objectName()));
  button->setDefaultAction(action);
  button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  button->setAutoRaise(true);
  button->setFocusPolicy(Qt::TabFocus);
  button->setFont(textFont(TextSize::small));
  title_->setSizePolicy(QSizePolicy::Minimum, QSizePolicy::Fixed);  // the button does not cut the title
  head_->setStretchFactor(title_, 1);
  head_->addWidget(button);
}

FieldRow* FieldSection::addField(const SpecField& field) {
  if (field.advanced && !more_) {
    more_ = new FoldButton(QStringLiteral("%1.more").arg(title_->objectName()), tr("Advanced"), body_);
    more_->setAccessibleName(tr("Advanced fields of %1").arg(title_->text()));
    more_->setFont(textFont(TextSize::small));
    grid_->addWidget(more_, grid_->rowCount(), 0, 1, 3, Qt::AlignLeft);
    connect(more_, &QAbstractButton::toggled, this, &FieldSection::foldingChanged);
  }
  auto* row = new FieldRow(field, grid_, body_);
  rows_.push_back(row);
  return row;
}

int FieldSection::labelWidth() const {
  int width = 0;
  for (const FieldRow* row : rows_) width = std::max(width, row->label()->sizeHint().width());
  return width;
}

int FieldSection::unitWidth() const {
  int width = 0;
  for (const FieldRow* row : rows_) width = std::max(width, row->unit()->sizeHint().width());
  return width;
}

int FieldSection::titleWidth() const {
  return head_->minimumSize().width();
}

int FieldSection::fieldsWidth(int unit_width) const {
  int width = 0;
  for (const FieldRow* row : rows_)
    if (row->isVisible()) width = std::max(width, row->leastWidth(unit_width));
  return width;
}

void FieldSection::setColumns(int label_width, int unit_width, bool stacked) {
  for (FieldRow* row : rows_) {
    row->label()->setMaximumWidth(stacked ? QWIDGETSIZE_MAX : label_width);
    row->setStacked(stacked);
  }
  grid_->setColumnMinimumWidth(0, stacked ? 0 : label_width);
  grid_->setColumnMinimumWidth(2, unit_width);
}

void FieldSection::setExpanded(bool expanded) {
  title_->setChecked(expanded);
}

bool FieldSection::isExpanded() const {
  return title_->isChecked();
}

void FieldSection::showWaiting() {
  const auto count = std::ranges::count_if(rows_, &FieldRow::isWaiting);
  if (count == 0) return title_->setMark({}, {});
  title_->setMark(tr("\u25CF %1 for the next run").arg(count), tr("\u25CF %1").arg(count));
}

void FieldSection::setAdvancedShown(bool shown) {
  if (more_) more_->setChecked(shown);
}

bool FieldSection::isAdvancedShown() const {
  return more_ && more_->isChecked();
}

void FieldSection::arrange(const RunSpec& spec, const std::vector<const SpecField*>* filter, bool unfolds) {
  const bool folded = !unfolds && !title_->isChecked();
  bool any = false;
  bool any_visible = false;
  bool any_advanced = false;
  for (FieldRow* row : rows_) {
    const SpecField& field = row->field();
    const bool applies = !field.applies || field.applies(spec);
    // A field that needs attention is shown even if it does not apply or is folded away, so that it can be corrected.
    const bool attention = row->needsAttention();
    const bool listed = filter ? std::find(filter->begin(), filter->end(), &field) != filter->end()
                               : !field.advanced || isAdvancedShown();
    const bool wanted = (!folded && listed) || (!filter && attention);
    const bool visible = wanted && (applies || filter || attention);
    any = any || (filter && listed);
    if (row->isVisible() != visible) row->setVisible(visible);
    any_visible = any_visible || visible;
    any = any || visible || (applies && !filter);
    any_advanced = any_advanced || (field.advanced && applies);
  }
  if (more_) more_->setVisible(!filter && !folded && any_advanced);
  setVisible(any);
  body_->setVisible(!folded || any_visible);
}

}  // namespace accrue::ui
