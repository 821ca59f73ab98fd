// SPDX-License-Identifier: GPL-3.0-or-later
#include "choice_editor.h"

#include <QCheckBox>
#include <QComboBox>

#include "models/run_text.h"

namespace accrue::ui {

namespace {

SpecValue valueOf(const SpecField& field, const QVariant& data) {
  if (!data.isValid()) return std::monostate{};
  if (field.type == FieldType::boolean) return data.toBool();
  return data.toString().toStdString();
}

}  // namespace

ChoiceEditor::ChoiceEditor(const SpecField& field, QWidget* parent)
    : FieldEditor(parent), field_(field), combo_(new QComboBox(parent)) {
  combo_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  combo_->setMinimumContentsLength(6);
  if (field.optional)
    combo_->addItem(field.section() == "accumulation" ? tr("as the dialect") : tr("derived"), QVariant());
  if (field.type == FieldType::boolean) {
    combo_->addItem(tr("yes"), true);
    combo_->addItem(tr("no"), false);
  }
  for (const std::string_view choice : field.choices) combo_->addItem(fromView(choice), fromView(choice));
  connect(combo_, &QComboBox::activated, this,
          [this](int index) { Q_EMIT edited(valueOf(field_, combo_->itemData(index))); });
}

QWidget* ChoiceEditor::widget() const {
  return combo_;
}

void ChoiceEditor::show(const RunSpec& spec) {
  const SpecValue value = field_.get(spec);
  for (int index = 0; index < combo_->count(); ++index)
    if (valueOf(field_, combo_->itemData(index)) == value) combo_->setCurrentIndex(index);
}

SwitchEditor::SwitchEditor(const SpecField& field, QWidget* parent)
    : FieldEditor(parent), field_(field), box_(new QCheckBox(parent)) {
  connect(box_, &QCheckBox::clicked, this, [this](bool on) { Q_EMIT edited(SpecValue(on)); });
}

QWidget* SwitchEditor::widget() const {
  return box_;
}

void SwitchEditor::show(const RunSpec& spec) {
  const SpecValue value = field_.get(spec);
  box_->setChecked(std::holds_alternative<bool>(value) && std::get<bool>(value));
}

}  // namespace accrue::ui
