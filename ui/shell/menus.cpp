// SPDX-License-Identifier: GPL-3.0-or-later
#include "menus.h"

#include <QActionGroup>
#include <QDockWidget>
#include <QKeyEvent>
#include <QMainWindow>
#include <QMenu>
#include <QMenuBar>
#include <QToolBar>
#include <QToolButton>
#include <utility>

#include "kit/actions.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "widgets/dock_switch.h"

namespace accrue::ui {

namespace {

/// An open menu keeps its letters: those of commands in the runs table would go before them, because the menu bar,
/// which shows these commands, has the focus while a menu is open by a key.
class LetterGuard final : public QObject {
 public:
  using QObject::QObject;

 protected:
  bool eventFilter(QObject*, QEvent* event) override {
    if (event->type() != QEvent::ShortcutOverride) return false;
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->modifiers() == Qt::NoModifier && !key->text().isEmpty() && key->text().front().isLetter()) event->accept();
    return false;
  }
};

QMenu* named(QMenu* menu, const MenuRow& row) {
  menu->setObjectName(QLatin1String(row.name));
  menu->setToolTipsVisible(true);
  return menu;
}

void addSwitches(QMenu* menu, const QList<QDockWidget*>& docks, const QList<QToolBar*>& bars) {
  int number = 1;
  for (QDockWidget* dock : docks) {
    auto* show = new DockSwitch(dock);
    if (number <= 9) show->setShortcut(QKeySequence(QStringLiteral("Alt+%1").arg(number++)));
    menu->addAction(show);
  }
  menu->addSeparator();
  for (QToolBar* bar : bars) {
    bar->toggleViewAction()->setObjectName(QStringLiteral("%1Action").arg(bar->objectName()));
    menu->addAction(bar->toggleViewAction());
  }
}

}  // namespace

void buildMenus(QMainWindow* window, const Actions& actions, const QList<QDockWidget*>& docks,
                const QList<QToolBar*>& bars) {
  QMenu* menu = nullptr;
  for (const MenuRow& row : menuTable()) switch (row.kind) {
      case MenuRow::menu:
        menu = named(window->menuBar()->addMenu(tr(row.text)), row);
        break;
      case MenuRow::submenu:
        named(menu->addMenu(tr(row.text)), row);
        break;
      case MenuRow::command:
        menu->addAction(actions[row.id]);
        break;
      case MenuRow::docks:
        addSwitches(menu, docks, bars);
        break;
      case MenuRow::separator:
        menu->addSeparator();
    }
  for (const auto& [name, group] :
       {std::pair("clockMenu", actions.clocks()), {"themeMenu", actions.themes()}, {"layoutMenu", actions.layouts()}})
    window->findChild<QMenu*>(QLatin1String(name))->addActions(group->actions());
  auto* guard = new LetterGuard(window);
  for (QMenu* each : window->menuBar()->findChildren<QMenu*>()) each->installEventFilter(guard);
}

QToolBar* buildRunBar(QMainWindow* window, const Actions& actions) {
  auto* bar = new QToolBar(tr("Run control"), window);
  bar->setObjectName(QStringLiteral("runBar"));
  bar->setMovable(false);
  bar->setToolButtonStyle(Qt::ToolButtonIconOnly);
  bar->addActions({actions[Command::run], actions[Command::pause], actions[Command::stepPhase],
                   actions[Command::stepMicro], actions[Command::stepUpdate], actions[Command::stop]});
  for (QAction* action : {actions[Command::run], actions[Command::pause], actions[Command::stop]})
    if (auto* button = qobject_cast<QToolButton*>(bar->widgetForAction(action)))
      button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  for (QAction* action : bar->actions()) {
    QWidget* button = bar->widgetForAction(action);
    button->setObjectName(QStringLiteral("%1.button").arg(action->objectName()));
    button->setFocusPolicy(Qt::TabFocus);
  }
  bar->addSeparator();
  return bar;
}

}  // namespace accrue::ui
