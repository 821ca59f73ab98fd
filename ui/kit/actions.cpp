// SPDX-License-Identifier: GPL-3.0-or-later
#include "actions.h"

#include <QActionGroup>

#include "clock.h"
#include "text.h"
#include "theme.h"

namespace accrue::ui {

namespace {

QStringList textsOf(const QList<QKeySequence>& keys) {
  QStringList texts;
  for (const QKeySequence& each : keys) texts.append(each.toString(QKeySequence::NativeText));
  return texts;
}

/// As a menu shows it, without keys and mnemonic.
QString menuText(const QString& text) {
  return text.section(QLatin1Char('\t'), 0, 0).remove(QLatin1Char('&'));
}

QString plainText(const QString& text) {
  return menuText(text).remove(QStringLiteral("\u2026"));
}

void setTexts(QAction* action, const QString& text, const QString& help) {
  const QString plain = plainText(text);
  action->setText(text);
  action->setIconText(plain);
  action->setStatusTip(help.isEmpty() ? plain : help);
  const QKeySequence keys = action->shortcut();
  // A button without a text is known by it, so it begins with the command's name.
  const QString called = keys.isEmpty() ? plain
                                        //: Tooltip of a command: its name (its key)
                                        : tr("%1 (%2)").arg(plain, keys.toString(QKeySequence::NativeText));
  action->setToolTip(help.isEmpty() ? called : called + QLatin1Char('\n') + help);
}

/// What a row makes an action of, or each of several.
struct ActionTexts {
  QString name;
  QString text;
  QString help;
  QList<QKeySequence> keys;
};

QAction* makeAction(const MenuRow& row, const ActionTexts& own, QObject* owner) {
  auto* action = new QAction(owner);
  action->setObjectName(own.name);
  action->setCheckable(row.checkable);
  if (*row.icon) action->setIcon(themedIcon(QLatin1String(row.icon)));
  const bool in_plots = row.place == KeyPlace::inPlots;
  if (!in_plots) action->setShortcuts(own.keys);
  if (row.place == KeyPlace::inRuns || row.place == KeyPlace::inQueue)
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  setTexts(action, own.text, own.help);
  if (in_plots) action->setText(own.text + QLatin1Char('\t') + textsOf(own.keys).join(QLatin1Char(' ')));
  return action;
}

QAction* makeAction(const MenuRow& row, QObject* owner) {
  return makeAction(row, {QLatin1String(row.name), tr(row.text), tr(row.help), keysOf(row)}, owner);
}

/// Those of a group are its children.
QAction* numbered(QAction* choice) {
  choice->setData(static_cast<int>(choice->actionGroup()->actions().indexOf(choice)));
  return choice;
}

QAction* makeClock(const MenuRow& row, Clock clock, QActionGroup* group) {
  const QString name = QStringLiteral("clockAction.%1").arg(clockKey(clock));
  return makeAction(row, {name, clockName(clock), clockHelp(clock), {keysOf(row).value(static_cast<int>(clock))}},
                    group);
}

}  // namespace

QAction* makeAction(Command command, QObject* owner) {
  return makeAction(rowOf(command), owner);
}

QString ListedCommand::name() const {
  const QString own = menuText(action ? action->text() : tr(row->text));
  //: One of several: "Theme: Dark"
  return family.isEmpty() ? own : tr("%1: %2").arg(family, own);
}

QStringList ListedCommand::keys() const {
  if (!action) return textsOf(keysOf(*row));
  const QString in_text = action->text().section(QLatin1Char('\t'), 1);
  return in_text.isEmpty() ? textsOf(action->shortcuts()) : QStringList(in_text);
}

QString ListedCommand::help() const {
  if (!action || row->kind == MenuRow::command) return tr(row->help);
  return action->statusTip() == plainText(action->text()) ? QString() : action->statusTip();
}

void Actions::enableUnless(const QString& lacking, Command command) const {
  QAction* action = (*this)[command];
  action->setEnabled(lacking.isEmpty());
  setTexts(action, action->text(), lacking.isEmpty() ? tr(rowOf(command).help) : lacking);
}

Actions::Actions(QObject* owner) {
  QString menu;
  QString family;
  QActionGroup* group = nullptr;
  QList<ListedCommand> choices;
  for (const MenuRow& row : menuTable()) {
    if (row.id) commands_.push_back(row.kind == MenuRow::command ? makeAction(row, owner) : nullptr);
    switch (row.kind) {
      case MenuRow::menu:
        menu = plainText(tr(row.text));
        break;
      case MenuRow::submenu:
        family = tr(row.family);
        if (!family.isEmpty()) choices_[row.name] = group = new QActionGroup(owner);
        break;
      case MenuRow::choice:
        choices.append({&row, numbered(makeAction(row, group)), menu, family});
        break;
      case MenuRow::clocks:
        for (const Clock clock : allClocks)
          choices.append({&row, numbered(makeClock(row, clock, group)), menu, family});
        break;
      case MenuRow::panels:
        panel_ = {&row, nullptr, menu, tr(row.family)};
        break;
      case MenuRow::command:
      case MenuRow::keys_alone:
        list_.append({&row, commands_.back(), menu, {}});
        break;
      case MenuRow::separator:
        break;
    }
  }
  list_.append(choices);
  // Its button has less room than its menu.
  (*this)[Command::compareDialects]->setIconText(tr("What would each do?"));
}

QActionGroup* Actions::choices(std::string_view submenu) const {
  const auto found = choices_.find(submenu);
  return found == choices_.end() ? nullptr : found->second;
}

void Actions::addPanel(QAction* show) {
  show->setShortcut(keysOf(*panel_.row).value(panels_.size()));
  panels_.append(show);
  panel_.action = show;
  list_.append(panel_);
}

}  // namespace accrue::ui
