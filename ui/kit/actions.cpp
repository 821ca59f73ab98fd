// SPDX-License-Identifier: GPL-3.0-or-later
#include "actions.h"

#include <QActionGroup>
#include <QKeySequence>

#include "clock.h"
#include "text.h"
#include "theme.h"

namespace accrue::ui {

namespace {

QList<QKeySequence> keysOf(const MenuRow& row) {
  QList<QKeySequence> list;
  for (const QString& keys : QString::fromLatin1(row.keys).split(QLatin1Char(' '), Qt::SkipEmptyParts))
    list.append(QKeySequence(keys));
  return list;
}

bool isOfPlots(CommandUse use) {
  return use == CommandUse::inPlots || use == CommandUse::checkableInPlots;
}

/// Texts of a command with a mnemonic, as a menu shows it.
QString plainText(QString text) {
  return text.remove(QLatin1Char('&')).remove(QStringLiteral("\u2026"));
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

QAction* addChoice(QActionGroup* group, const char* name, const QString& text, int number) {
  auto* action = new QAction(text, group);
  action->setObjectName(QLatin1String(name));
  action->setData(number);
  return action;
}

QActionGroup* clockChoices(QObject* owner) {
  auto* group = new QActionGroup(owner);
  for (int number = 1; const Clock clock : allClocks) {
    auto* action = addChoice(group, qPrintable(QStringLiteral("clockAction.%1").arg(clockKey(clock))),
                             tr("%1\t%2").arg(clockName(clock)).arg(number++), static_cast<int>(clock));
    action->setCheckable(true);
    action->setStatusTip(clockHelp(clock));
  }
  return group;
}

QActionGroup* themeChoices(QObject* owner) {
  auto* group = new QActionGroup(owner);
  const std::pair<const char*, QString> rows[] = {{"themeAction.system", tr("&As the system")},
                                                  {"themeAction.light", tr("&Light")},
                                                  {"themeAction.dark", tr("&Dark")},
                                                  {"themeAction.highContrast", tr("&High contrast")}};
  for (int number = 0; const auto& [name, text] : rows) addChoice(group, name, text, number++)->setCheckable(true);
  return group;
}

QActionGroup* layoutChoices(QObject* owner) {
  auto* group = new QActionGroup(owner);
  const std::tuple<const char*, QString, QString> rows[] = {
      {"layoutAction.studio", tr("&Studio"), tr("Set-up, plots, window and runs: the default layout")},
      {"layoutAction.compare", tr("&Compare"), tr("Plots and a large table of runs")},
      {"layoutAction.debug", tr("&Debug"), tr("Plots, a wide window panel and the pipeline")},
      {"layoutAction.lesson", tr("&Lesson"), tr("One panel on the left, the plots, and the window panel")}};
  for (int number = 0; const auto& [name, text, help] : rows) {
    QAction* action = addChoice(group, name, text, number++);
    action->setShortcut(QKeySequence(QStringLiteral("Ctrl+%1").arg(number)));
    setTexts(action, text, help);
  }
  return group;
}

}  // namespace

QAction* Actions::add(const MenuRow& row, QObject* owner) {
  auto* action = new QAction(owner);
  action->setObjectName(QStringLiteral("%1Action").arg(QLatin1String(row.name)));
  if (!isOfPlots(row.use)) action->setShortcuts(keysOf(row));
  if (row.use == CommandUse::inRuns) action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  action->setCheckable(row.use == CommandUse::checkable || row.use == CommandUse::checkableInPlots);
  if (*row.icon) action->setIcon(themedIcon(QLatin1String(row.icon)));
  setTexts(action, tr(row.text), *row.help ? tr(row.help) : QString());
  if (isOfPlots(row.use)) action->setText(action->text() + QLatin1Char('\t') + QLatin1String(row.keys));
  return action;
}

Actions::Actions(QObject* owner)
    : clocks_(clockChoices(owner)), themes_(themeChoices(owner)), layouts_(layoutChoices(owner)) {
  for (const MenuRow& row : menuTable())
    if (row.kind == MenuRow::command) all_.append(commands_[static_cast<std::size_t>(row.id)] = add(row, owner));
  for (const QActionGroup* group : {clocks_, themes_, layouts_}) all_.append(group->actions());
  // Its button has less room than its menu.
  (*this)[Command::compareDialects]->setIconText(tr("What would each do?"));
}

QString keysText(const QAction& action) {
  QStringList texts;
  for (const QKeySequence& sequence : action.shortcuts()) texts.append(sequence.toString(QKeySequence::NativeText));
  const QString in_text = action.text().section(QLatin1Char('\t'), 1);
  if (!in_text.isEmpty()) texts.append(in_text);
  return texts.join(QStringLiteral("  "));
}

}  // namespace accrue::ui
