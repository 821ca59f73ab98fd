// SPDX-License-Identifier: GPL-3.0-or-later
#include "plugin_card.h"

#include <QAbstractSpinBox>
#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QPainter>
#include <QVBoxLayout>
#include <algorithm>
#include <cstdlib>

#include "accrue/run/fields/spec_fields.h"
#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "kit/number_text.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "memory_bar.h"
#include "setup/field_editor.h"
#include "widgets/switch_box.h"

namespace accrue::ui {

namespace {

/// The fields of all cards are aligned in one column.
int labelWidth() {
  int width = 0;
  for (const Capability plugin : all_plugins())
    for (const std::string_view key : keys_of(plugin))
      width =
          std::max(width, QFontMetrics(textFont(TextSize::small)).horizontalAdvance(fromView(find_field(key)->label)));
  return width;
}

QString byKind(const RankCost& cost) {
  QStringList lines;
  for (const MemoryKind& kind : memoryKinds())
    if (const std::int64_t bytes = cost.*kind.bytes; bytes != 0)
      lines << QStringLiteral("%1: %2").arg(kind.name, signedBytesText(bytes));
  return lines.join(QLatin1Char('\n'));
}

QString byAxis(const RankCost& cost) {
  QStringList lines;
  for (const Axis axis :
       {Axis::data, Axis::tensor, Axis::pipeline, Axis::model, Axis::embedding, Axis::position_embedding, Axis::world})
    if (const std::int64_t bytes = cost.sent(axis); bytes != 0)
      lines << QStringLiteral("%1: %2").arg(fromView(to_string(axis)), signedBytesText(bytes));
  return lines.join(QLatin1Char('\n'));
}

/// The palette is the card's: a label gets a changed one only after its parent.
void showDifference(QLabel* label, const QPalette& palette, const QString& name, std::int64_t bytes,
                    const QString& help, const QString& parts) {
  const ThemeColors colors = themeColors(palette);
  const QColor color = bytes < 0 ? colors.finished : bytes > 0 ? colors.text : colors.muted;
  label->setText(QStringLiteral("<span style='color:%1'>%2</span> <span style='color:%3'>%4</span>")
                     .arg(colors.muted.name(), name, color.name(), signedBytesText(bytes)));
  label->setToolTip(parts.isEmpty() ? help : help + QLatin1Char('\n') + parts);
}

/// Returns the field that sets the key instead of the document, if any.
const LoweredKey* setterShown(const LoweredMegatron& lowered, const RunSpec& document, const SpecField& field) {
  const LoweredKey* setter = lowered.setter_of(field.key);
  return setter && field.get(document) == field.get(RunSpec()) ? setter : nullptr;
}

}  // namespace

QString signedBytesText(std::int64_t bytes) {
  const QString size = bytesText(std::abs(bytes));
  return bytes == 0 ? size : (bytes < 0 ? minusSign : QChar(u'+')) + size;
}

PluginCard::PluginCard(SpecDocument* document, PreflightRunner* preflight, Capability plugin, QWidget* parent)
    : QWidget(parent),
      document_(document),
      preflight_(preflight),
      plugin_(plugin),
      switch_(new SwitchBox(fromView(title_of(plugin)), this)),
      fields_(new QWidget(this)),
      note_(new QWidget(this)) {
  const QString id = fromView(to_string(plugin));
  setObjectName(QStringLiteral("pluginCard.%1").arg(id));
  switch_->setObjectName(QStringLiteral("pluginSwitch.%1").arg(id));
  switch_->setFont(textFont(TextSize::body, QFont::DemiBold));
  switch_->setToolTip(fromView(help_of(plugin)));
  connect(switch_, &SwitchBox::clicked, this, [this](bool on) {
    //: Undo step; %1 is a plug-in
    const QString what = on ? tr("Switch on %1") : tr("Switch off %1");
    document_->setSpec(switched(document_->spec(), plugin_), what.arg(switch_->text()));
    showSpec(preflight_->lowered());
  });
  help_ = addText("pluginHelp");
  help_->setText(fromView(help_of(plugin)));
  help_->setForegroundRole(QPalette::PlaceholderText);
  const int indent = SwitchBox::textOffset();
  auto* grid = new QGridLayout(fields_);
  grid->setContentsMargins(indent, 0, 0, 0);
  grid->setHorizontalSpacing(space::inGroup);
  grid->setVerticalSpacing(space::base);
  grid->setColumnMinimumWidth(0, labelWidth());
  grid->setColumnStretch(2, 1);
  for (const std::string_view key : keys_of(plugin)) addField(grid, key);
  memory_ = addText("pluginMemory");
  wire_ = addText("pluginWire");
  for (QLabel* label : {memory_, wire_}) {
    label->setFont(tabularFont(TextSize::small));
    label->setTextFormat(Qt::RichText);
    label->setWordWrap(false);
  }
  // One column over all cards.
  memory_->setMinimumWidth(fontMetrics().averageCharWidth() * 18);
  note_icon_ = new QLabel(note_);
  note_text_ = addText("pluginReason");
  auto* note = new QHBoxLayout(note_);
  note->setContentsMargins(indent, 0, 0, 0);
  note->setSpacing(space::base);
  note->addWidget(note_icon_, 0, Qt::AlignTop);
  note->addWidget(note_text_, 1);
  auto* costs = new QHBoxLayout;
  costs->setContentsMargins(indent, 0, 0, 0);
  costs->setSpacing(space::inGroup);
  costs->addWidget(memory_);
  costs->addWidget(wire_);
  costs->addStretch(1);
  auto* help = new QHBoxLayout;
  help->setContentsMargins(indent, 0, 0, 0);
  help->addWidget(help_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space::inGroup, space::inGroup, 0, space::inGroup);
  layout->setSpacing(space::base);
  layout->addWidget(switch_);
  layout->addLayout(help);
  layout->addWidget(fields_);
  layout->addLayout(costs);
  layout->addWidget(note_);
  showSpec(preflight_->lowered());
  showState(nullptr);
}

QLabel* PluginCard::addText(const char* object_name) {
  auto* label = new QLabel(this);
  label->setObjectName(QStringLiteral("%1.%2").arg(QLatin1String(object_name), fromView(to_string(plugin_))));
  label->setFont(textFont(TextSize::small));
  label->setWordWrap(true);
  return label;
}

void PluginCard::addField(QGridLayout* grid, std::string_view key) {
  const SpecField& field = *find_field(key);
  // The switch itself edits a field without other values.
  if (field.type == FieldType::boolean || field.key == "parallel.zero") return;
  const int row = grid->rowCount();
  Row added{&field, new QLabel(fromView(field.label), fields_), FieldEditor::create(field, fields_),
            new QLabel(fromView(field.unit), fields_)};
  QWidget* editor = added.editor->widget();
  editor->setObjectName(QStringLiteral("plugin.%1").arg(fromView(key)));
  editor->setFixedWidth(fontMetrics().averageCharWidth() * 14);
  editor->setToolTip(fromView(field.help));
  added.label->setBuddy(editor);
  added.label->setFont(textFont(TextSize::small));
  added.unit->setFont(textFont(TextSize::small));
  added.unit->setForegroundRole(QPalette::PlaceholderText);
  grid->addWidget(added.label, row, 0, Qt::AlignRight | Qt::AlignVCenter);
  grid->addWidget(editor, row, 1);
  grid->addWidget(added.unit, row, 2, Qt::AlignLeft | Qt::AlignVCenter);
  connect(added.editor, &FieldEditor::edited, this,
          [this, &field](const SpecValue& value) { document_->setField(field, value); });
  connect(added.editor, &FieldEditor::problemChanged, this, [this](const QString& problem) {
    problem_ = problem;
    showNote();
  });
  // Invalid text is discarded on leaving, because a run would not use it.
  if (auto* number = qobject_cast<QAbstractSpinBox*>(editor))
    connect(number, &QAbstractSpinBox::editingFinished, added.editor,
            [this, shown = added.editor] { shown->show(preflight_->lowered().spec); });
  rows_.append(added);
}

void PluginCard::showSpec(const LoweredMegatron& lowered) {
  const RunSpec& spec = lowered.spec;
  set_by_.clear();
  for (const std::string_view key : keys_of(plugin_))
    if (const LoweredKey* setter = setterShown(lowered, document_->spec(), *find_field(key)))
      set_by_ = tr("Set by %1 of the Megatron-LM plug-in").arg(QString::fromStdString(setter->by));
  on_ = is_on(plugin_, spec);
  switch_->setChecked(on_);
  bool any = false;
  for (const Row& row : rows_) {
    const bool applies = on_ && (!row.field->applies || row.field->applies(spec));
    row.label->setVisible(applies);
    row.editor->widget()->setVisible(applies);
    row.unit->setVisible(applies);
    row.editor->show(spec);
    row.editor->widget()->setEnabled(!setterShown(lowered, document_->spec(), *row.field));
    any = any || applies;
  }
  fields_->setVisible(any);
  showLock();
  update();
}

void PluginCard::showState(const PluginState* state) {
  const bool known = state && state->on == on_;
  const QString locked = known ? QString::fromStdString(state->locked) : QString();
  refused_ = !locked.isEmpty();
  reason_ = locked.isEmpty() && known ? QString::fromStdString(state->fault) : locked;
  showLock();
  difference_ = known && locked.isEmpty() ? state->difference : std::nullopt;
  showCosts();
}

void PluginCard::showLock() {
  switch_->setEnabled(!refused_ && set_by_.isEmpty());
  showNote();
}

void PluginCard::showCosts() {
  memory_->setVisible(difference_.has_value());
  wire_->setVisible(difference_.has_value());
  if (!difference_) return;
  showDifference(memory_, palette(), tr("Memory"), difference_->total(),
                 tr("Bytes that the fullest rank holds: change compared with the plug-in off"), byKind(*difference_));
  showDifference(wire_, palette(), tr("Wire"), sent_bytes(*difference_),
                 tr("Bytes that this rank sends for an update: change compared with the plug-in off"),
                 byAxis(*difference_));
}

void PluginCard::showNote() {
  const QString text = !problem_.isEmpty() ? problem_ : set_by_.isEmpty() ? reason_ : set_by_;
  note_text_->setText(text);
  note_->setVisible(!text.isEmpty());
  switch_->setAccessibleDescription(text.isEmpty() ? fromView(help_of(plugin_)) : text);
  const int side = QFontMetrics(note_text_->font()).height();
  const QIcon icon = isLocked() ? themedIcon(QStringLiteral("lock")) : stateIcon(RunState::failed);
  note_icon_->setPixmap(icon.pixmap(QSize(side, side), devicePixelRatioF()));
}

bool PluginCard::isLocked() const {
  return !switch_->isEnabled();
}

QString PluginCard::reason() const {
  return note_text_->text();
}

void PluginCard::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  showNote();
  showCosts();
}

void PluginCard::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  painter.setPen(colors.hairline);
  painter.drawLine(0, height() - 1, width(), height() - 1);
  if (on_) painter.fillRect(QRect(0, space::inGroup, 3, height() - 2 * space::inGroup), colors.accent);
}

}  // namespace accrue::ui
