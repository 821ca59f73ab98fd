// SPDX-License-Identifier: GPL-3.0-or-later
#include "choice_editor.h"

#include <QAbstractItemView>
#include <QCheckBox>
#include <QComboBox>

#include "accrue/run/fields/choice_names.h"
#include "choice_notes_delegate.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "series/run_text.h"

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
    combo_->addItem(switchWord(true), true);
    combo_->addItem(switchWord(false), false);
  }
  for (const std::string_view choice : field.choices) combo_->addItem(fromView(choice), fromView(choice));
  addNotes();
  connect(combo_, &QComboBox::activated, this, [this](int index) {
    Q_EMIT edited(valueOf(field_, combo_->itemData(index)));
    Q_EMIT finished();
  });
}

void ChoiceEditor::addNotes() {
  if (field_.choice_notes.empty()) return;
  const int first = combo_->count() - static_cast<int>(field_.choices.size());
  for (int choice = 0; choice < static_cast<int>(field_.choice_notes.size()); ++choice) {
    const QString note = fromView(field_.choice_notes[static_cast<std::size_t>(choice)]);
    const QString name = combo_->itemText(first + choice);
    combo_->setItemData(first + choice, note, ChoiceNotesDelegate::noteRole);
    //: A choice and what it means
    combo_->setItemData(first + choice, tr("%1: %2").arg(name, note), Qt::AccessibleTextRole);
    combo_->setItemData(first + choice, note, Qt::ToolTipRole);
  }
  combo_->setItemDelegate(new ChoiceNotesDelegate(combo_));
  combo_->view()->setTextElideMode(Qt::ElideNone);
}

void ChoiceEditor::showDerived(const RunSpec& spec) {
  if (!field_.derived) return;
  const SpecValue value = field_.derived(spec);
  if (std::holds_alternative<std::monostate>(value)) return;
  QString name = inSwitchWords(&field_, QString::fromStdString(format_value(value)));
  if (const auto* choice = std::get_if<std::string>(&value)) name = fromView(*choice);
  //: %1 is a dialect, %2 its value of the field
  combo_->setItemText(0, tr("as %1: %2").arg(fromView(to_name(spec.accumulation.dialect)), name));
  for (int index = 1; index < combo_->count(); ++index)
    if (combo_->itemText(index) == name)
      combo_->setItemData(0, combo_->itemData(index, Qt::ToolTipRole), Qt::ToolTipRole);
}

QWidget* ChoiceEditor::widget() const {
  return combo_;
}

void ChoiceEditor::show(const RunSpec& spec) {
  const SpecValue value = field_.get(spec);
  showDerived(spec);
  if (!field_.choice_notes.empty()) combo_->view()->setMinimumWidth(combo_->view()->sizeHintForColumn(0) + space::page);
  for (int index = 0; index < combo_->count(); ++index)
    if (valueOf(field_, combo_->itemData(index)) == value) combo_->setCurrentIndex(index);
}

SwitchEditor::SwitchEditor(const SpecField& field, QWidget* parent)
    : FieldEditor(parent), field_(field), box_(new QCheckBox(parent)) {
  connect(box_, &QCheckBox::clicked, this, [this](bool on) {
    Q_EMIT edited(SpecValue(on));
    Q_EMIT finished();
  });
}

QWidget* SwitchEditor::widget() const {
  return box_;
}

void SwitchEditor::show(const RunSpec& spec) {
  const SpecValue value = field_.get(spec);
  box_->setChecked(std::holds_alternative<bool>(value) && std::get<bool>(value));
}

}  // namespace accrue::ui
