// SPDX-License-Identifier: GPL-3.0-or-later
#include "field_section.h"

#include <QGridLayout>
#include <QLabel>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "style/theme.h"

namespace accrue::ui {

namespace {

QToolButton* foldButton(const QString& object_name, const QString& text, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setObjectName(object_name);
  button->setText(text);
  button->setAccessibleName(text);
  button->setCheckable(true);
  button->setAutoRaise(true);
  button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  button->setFocusPolicy(Qt::StrongFocus);
  button->setIconSize(QSize(space::icon, space::icon));
  return button;
}

}  // namespace

FieldSection::FieldSection(const QString& name, const QString& title, QWidget* parent)
    : QWidget(parent),
      title_(foldButton(QStringLiteral("section.%1").arg(name), title, this)),
      body_(new QWidget(this)),
      grid_(new QGridLayout(body_)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, space::inGroup);
  layout->setSpacing(space::base);
  layout->addWidget(title_);
  layout->addWidget(body_);
  title_->setFont(textFont(TextSize::body, QFont::DemiBold));
  title_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  title_->setChecked(true);
  grid_->setContentsMargins(space::betweenGroups, 0, 0, 0);
  grid_->setHorizontalSpacing(space::inGroup);
  grid_->setVerticalSpacing(space::base);
  grid_->setColumnStretch(1, 1);
  connect(title_, &QToolButton::toggled, this, [this] {
    showFolding();
    Q_EMIT foldingChanged();
  });
  showFolding();
}

FieldRow* FieldSection::addField(const SpecField& field) {
  if (field.advanced && !more_) {
    more_ = foldButton(QStringLiteral("%1.more").arg(title_->objectName()), tr("Advanced"), body_);
    more_->setAccessibleName(tr("Advanced fields of %1").arg(title_->text()));
    more_->setFont(textFont(TextSize::small));
    grid_->addWidget(more_, grid_->rowCount(), 0, 1, 3, Qt::AlignLeft);
    connect(more_, &QToolButton::toggled, this, [this] {
      showFolding();
      Q_EMIT foldingChanged();
    });
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

void FieldSection::finish(int label_width) {
  grid_->setColumnMinimumWidth(0, label_width);
}

void FieldSection::setExpanded(bool expanded) {
  title_->setChecked(expanded);
}

bool FieldSection::isExpanded() const {
  return title_->isChecked();
}

void FieldSection::setAdvancedShown(bool shown) {
  if (more_) more_->setChecked(shown);
}

bool FieldSection::isAdvancedShown() const {
  return more_ && more_->isChecked();
}

void FieldSection::arrange(const RunSpec& spec, const std::vector<const SpecField*>* filter) {
  searching_ = filter != nullptr;
  bool any = false;
  bool any_advanced = false;
  for (FieldRow* row : rows_) {
    const SpecField& field = row->field();
    const bool applies = !field.applies || field.applies(spec);
    // A field with a problem is shown even where it means nothing: it must be seen to be mended.
    const bool wanted = filter ? std::find(filter->begin(), filter->end(), &field) != filter->end()
                               : !field.advanced || isAdvancedShown() || row->hasProblem();
    const bool visible = wanted && (applies || filter || row->hasProblem());
    if (row->isVisible() != visible) row->setVisible(visible);
    any = any || visible || (applies && !filter);
    any_advanced = any_advanced || (field.advanced && applies);
  }
  if (more_) more_->setVisible(!filter && any_advanced);
  setVisible(any);
  showFolding();
}

void FieldSection::showFolding() {
  const auto chevron = [](bool open) {
    return themedIcon(open ? QStringLiteral("chevron-down") : QStringLiteral("chevron-right"));
  };
  title_->setIcon(chevron(title_->isChecked()));
  if (more_) more_->setIcon(chevron(more_->isChecked()));
  body_->setVisible(title_->isChecked() || searching_);
}

}  // namespace accrue::ui
