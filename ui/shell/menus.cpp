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

#include "dock_switch.h"
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

QMenu* addMenu(QMainWindow* window, const char* object_name, const QString& title) {
  QMenu* menu = window->menuBar()->addMenu(title);
  menu->setObjectName(QLatin1String(object_name));
  menu->setToolTipsVisible(true);
  return menu;
}

void fillView(QMenu* view, const WindowActions& actions, const QList<QDockWidget*>& docks,
              const QList<QToolBar*>& bars) {
  view->addAction(actions.startPage);
  view->addSeparator();
  int number = 1;
  for (QDockWidget* dock : docks) {
    auto* show = new DockSwitch(dock);
    if (number <= 9) show->setShortcut(QKeySequence(QStringLiteral("Alt+%1").arg(number++)));
    view->addAction(show);
  }
  view->addSeparator();
  for (QToolBar* bar : bars) {
    bar->toggleViewAction()->setObjectName(QStringLiteral("%1Action").arg(bar->objectName()));
    view->addAction(bar->toggleViewAction());
  }
  view->addSeparator();
  view->addActions({actions.nextPane, actions.previousPane, actions.fullScreen});
  view->addAction(actions.presenter);
  view->addSeparator();
  view->addActions({actions.largerText, actions.smallerText, actions.normalText, actions.narrate});
  QMenu* themes = view->addMenu(tr("&Theme"));
  themes->setObjectName(QStringLiteral("themeMenu"));
  themes->addActions(actions.themes->actions());
  view->addSeparator();
  QMenu* layouts = view->addMenu(tr("La&youts"));
  layouts->setObjectName(QStringLiteral("layoutMenu"));
  layouts->addActions(actions.layouts->actions());
  view->addAction(actions.resetLayout);
}

}  // namespace

QMenu* buildMenus(QMainWindow* window, const WindowActions& actions, const QList<QDockWidget*>& docks,
                  const QList<QToolBar*>& bars) {
  QMenu* file = addMenu(window, "fileMenu", tr("&File"));
  file->addActions({actions.newSpec, actions.open});
  QMenu* recent = file->addMenu(tr("Open re&cent"));
  recent->setObjectName(QStringLiteral("recentMenu"));
  recent->setToolTipsVisible(true);
  file->addMenu(tr("&Presets"))->setObjectName(QStringLiteral("presetMenu"));
  file->addActions({actions.openRun, actions.importFile, actions.importLog});
  file->addSeparator();
  file->addActions({actions.save, actions.saveAs});
  file->addSeparator();
  file->addActions(
      {actions.exportPlot, actions.exportData, actions.exportBundle, actions.exportScalars, actions.exportCode});
  file->addSeparator();
  file->addActions({actions.askOnClosing, actions.closeSpec, actions.quit});

  QMenu* edit = addMenu(window, "editMenu", tr("&Edit"));
  edit->addActions({actions.undo, actions.redo});
  edit->addSeparator();
  edit->addActions({actions.copyFigure, actions.find, actions.palette});
  edit->addSeparator();
  edit->addActions({actions.renameRun, actions.runNotes, actions.starRun, actions.deleteRun});

  QMenu* run = addMenu(window, "runMenu", tr("&Run"));
  run->addActions({actions.run, actions.queueRun, actions.runPaused, actions.pause});
  run->addSeparator();
  run->addActions({actions.stepPhase, actions.stepMicro, actions.stepUpdate});
  run->addSeparator();
  run->addActions({actions.stop, actions.stopUnsaved, actions.kill});
  run->addSeparator();
  run->addActions({actions.checkpoint, actions.resume, actions.branch, actions.attach});
  run->addSeparator();
  run->addAction(actions.setSteps);

  fillView(addMenu(window, "viewMenu", tr("&View")), actions, docks, bars);

  QMenu* plot = addMenu(window, "plotMenu", tr("&Plot"));
  plot->addActions({actions.fit, actions.follow, actions.logY, actions.groupSeeds});
  plot->addSeparator();
  plot->addActions({actions.zoomWindow, actions.nextWindow, actions.previousWindow});
  plot->addSeparator();
  plot->addActions({actions.copyValues, actions.showTable});
  plot->addSeparator();
  plot->addActions({actions.moreSmoothing, actions.lessSmoothing});
  QMenu* clocks = plot->addMenu(tr("&X axis"));
  clocks->setObjectName(QStringLiteral("clockMenu"));
  clocks->addActions(actions.clocks->actions());

  QMenu* compare = addMenu(window, "compareMenu", tr("&Compare"));
  compare->addActions({actions.compareDialects, actions.runAllDialects, actions.runAllOptimizers, actions.isoBatch});
  compare->addSeparator();
  compare->addActions({actions.baseline, actions.compareRuns, actions.goToParting});
  compare->addSeparator();
  compare->addActions({actions.pairedRun, actions.trainPair, actions.runSeeds, actions.groupRuns});

  QMenu* learn = addMenu(window, "learnMenu", tr("&Learn"));
  learn->addActions({actions.openLesson, actions.previousStep, actions.nextStep});
  learn->addSeparator();
  learn->addActions({actions.checkLesson, actions.lessonHint, actions.resetLesson, actions.leaveLesson});
  learn->addSeparator();
  learn->addActions({actions.instructorNotes, actions.bugGallery, actions.demo});

  QMenu* tools = addMenu(window, "toolsMenu", tr("&Tools"));
  tools->addActions({actions.chooseLibraries, actions.runFolder, actions.copyCommand, actions.exportTrace});

  QMenu* help = addMenu(window, "helpMenu", tr("&Help"));
  help->addAction(actions.help);
  help->addAction(actions.manual);
  help->addAction(actions.glossary);
  help->addAction(actions.shortcuts);
  help->addAction(actions.differences);
  help->addSeparator();
  help->addActions({actions.report, actions.about});
  auto* guard = new LetterGuard(window);
  for (QMenu* menu : window->menuBar()->findChildren<QMenu*>()) menu->installEventFilter(guard);
  return recent;
}

QToolBar* buildRunBar(QMainWindow* window, const WindowActions& actions) {
  auto* bar = new QToolBar(tr("Run control"), window);
  bar->setObjectName(QStringLiteral("runBar"));
  bar->setMovable(false);
  bar->setToolButtonStyle(Qt::ToolButtonIconOnly);
  bar->addActions({actions.run, actions.pause, actions.stepPhase, actions.stepMicro, actions.stepUpdate, actions.stop});
  for (QAction* action : {actions.run, actions.pause, actions.stop})
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
