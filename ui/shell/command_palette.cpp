// SPDX-License-Identifier: GPL-3.0-or-later
#include "command_palette.h"

#include <QCoreApplication>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "accrue/run/fields/spec_fields.h"
#include "kit/actions.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "widgets/selection_tint.h"

namespace accrue::ui {

namespace {

constexpr int action_role = Qt::UserRole;
constexpr int field_role = Qt::UserRole + 1;  ///< a field's key; a command has none
/// More than are read at a glance are searched in the form.
constexpr std::size_t most_fields = 8;

bool hasAll(const QString& text, const QStringList& words) {
  return std::ranges::all_of(words, [&text](const QString& word) { return text.contains(word, Qt::CaseInsensitive); });
}

}  // namespace

CommandPalette::CommandPalette(const Actions& actions, QWidget* parent)
    : QDialog(parent), actions_(actions), words_(new QLineEdit(this)), list_(new QListWidget(this)) {
  setObjectName(QStringLiteral("commandPalette"));
  setWindowTitle(tr("Commands"));
  words_->setObjectName(QStringLiteral("commandWords"));
  words_->setAccessibleName(tr("Find a command or a field"));
  words_->setPlaceholderText(tr("Find a command, or a field by any tool\u2019s name"));
  words_->installEventFilter(this);
  list_->setObjectName(QStringLiteral("commandList"));
  list_->setAccessibleName(tr("Commands"));
  new SelectionTint(list_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space::betweenGroups, space::betweenGroups, space::betweenGroups, space::betweenGroups);
  layout->setSpacing(space::inGroup);
  layout->addWidget(words_);
  layout->addWidget(list_);
  resize(480, 400);
  connect(words_, &QLineEdit::textChanged, this, &CommandPalette::filter);
  connect(words_, &QLineEdit::returnPressed, this, &CommandPalette::giveCurrent);
  connect(list_, &QListWidget::itemActivated, this, &CommandPalette::giveCurrent);
  // The focus stays in the line, so that a screen reader hears there which command would be given.
  connect(list_, &QListWidget::currentItemChanged, this,
          [this](QListWidgetItem* item) { words_->setAccessibleDescription(item ? item->text() : tr("No command")); });
}

void CommandPalette::choose() {
  commands_.clear();
  for (const ListedCommand& each : actions_.list()) {
    if (!each.action || !each.action->isEnabled() || each.action == actions_[Command::palette]) continue;
    const QString name = each.name();
    const QString keys = each.keys().join(QStringLiteral("  "));
    //: A command and its keys
    commands_.push_back({each.action, name, keys.isEmpty() ? name : tr("%1 (%2)").arg(name, keys)});
  }
  words_->clear();
  filter();
  show();
  raise();
  activateWindow();
  words_->setFocus(Qt::PopupFocusReason);
}

/// Commands with the words in their names come first, then fields, then commands with the words in their help.
void CommandPalette::filter() {
  list_->clear();
  const QStringList words = words_->text().split(QLatin1Char(' '), Qt::SkipEmptyParts);
  const auto listCommands = [this, &words](bool by_name) {
    for (const Entry& command : commands_) {
      const QString help = command.name + QLatin1Char(' ') + command.action->statusTip();
      const bool named = hasAll(command.name, words);
      if (by_name ? !named : named || !hasAll(help, words)) continue;
      auto* item = new QListWidgetItem(command.text, list_);
      item->setToolTip(command.action->statusTip());
      item->setData(action_role, QVariant::fromValue(command.action));
    }
  };
  listCommands(true);
  listFields();
  listCommands(false);
  if (list_->count() > 0) return list_->setCurrentRow(0);
  auto* none = new QListWidgetItem(tr("No command or field has these words"), list_);
  none->setFlags(Qt::NoItemFlags);
}

void CommandPalette::listFields() {
  std::vector<const SpecField*> fields = search_fields(words_->text().toStdString());
  std::erase_if(fields, [](const SpecField* field) { return field->key.find('.') == std::string_view::npos; });
  for (std::size_t i = 0; i < std::min(fields.size(), most_fields); ++i) {
    auto* item = new QListWidgetItem(tr("Field: %1").arg(fromView(fields[i]->label)), list_);
    item->setToolTip(fromView(fields[i]->help));
    item->setData(field_role, fromView(fields[i]->key));
  }
}

void CommandPalette::giveCurrent() {
  const QListWidgetItem* item = list_->currentItem();
  if (!item) return;
  auto* action = item->data(action_role).value<QAction*>();
  const QString field = item->data(field_role).toString();
  hide();
  parentWidget()->activateWindow();
  if (action)
    action->trigger();
  else
    Q_EMIT fieldChosen(field);
}

/// The keys that move in a list move in it, too, while the words are written.
bool CommandPalette::eventFilter(QObject* object, QEvent* event) {
  if (object == words_ && event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    for (const int moving : {Qt::Key_Up, Qt::Key_Down, Qt::Key_PageUp, Qt::Key_PageDown})
      if (key == moving) return QCoreApplication::sendEvent(list_, event);
  }
  return QDialog::eventFilter(object, event);
}

}  // namespace accrue::ui
