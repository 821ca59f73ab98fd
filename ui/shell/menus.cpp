// SPDX-License-Identifier: GPL-3.0-or-later
#include "menus.h"

#include <QActionGroup>
#include <QKeyEvent>
#include <QMainWindow>
#include <QMenu>
#include <QMenuBar>
#include <QToolBar>
#include <QToolButton>

#include "kit/actions.h"
#include "kit/text.h"
#include "kit/theme.h"

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

void addSwitches(QMenu* menu, const Actions& actions, const QList<QToolBar*>& bars) {
  menu->addActions(actions.panels());
  menu->addSeparator();
  for (QToolBar* bar : bars) {
    bar->toggleViewAction()->setObjectName(QStringLiteral("%1Action").arg(bar->objectName()));
    menu->addAction(bar->toggleViewAction());
  }
}

}  // namespace

void buildMenus(QMainWindow* window, const Actions& actions, const QList<QToolBar*>& bars) {
  QMenu* menu = nullptr;
  for (const MenuRow& row : menuTable()) switch (row.kind) {
      case MenuRow::menu:
        menu = named(window->menuBar()->addMenu(tr(row.text)), row);
        break;
      case MenuRow::submenu: {
        QMenu* submenu = named(menu->addMenu(tr(row.text)), row);
        if (const QActionGroup* choices = actions.choices(row.name)) submenu->addActions(choices->actions());
        break;
      }
      case MenuRow::command:
        menu->addAction(actions[*row.id]);
        break;
      case MenuRow::panels:
        addSwitches(menu, actions, bars);
        break;
      case MenuRow::separator:
        menu->addSeparator();
        break;
      case MenuRow::choice:
      case MenuRow::clocks:
      case MenuRow::keys_alone:
        break;
    }
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
