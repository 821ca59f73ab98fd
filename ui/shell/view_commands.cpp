// SPDX-License-Identifier: GPL-3.0-or-later
#include "view_commands.h"

#include <QActionGroup>
#include <QDockWidget>
#include <QSettings>
#include <QToolBar>

#include "centre_page.h"
#include "docks.h"
#include "kit/actions.h"
#include "kit/theme.h"
#include "layouts.h"
#include "plots/plot_area.h"
#include "teach/lesson_desk.h"
#include "view_size.h"

namespace accrue::ui {

ViewCommands::ViewCommands(const Actions& actions, const Parts& parts, QMainWindow* window)
    : QObject(window),
      parts_(parts),
      window_(window),
      size_(new ViewSize(actions, parts.settings, window, parts.docks->find("windowDock"))) {
  connect(actions[Command::resetLayout], &QAction::triggered, this, &ViewCommands::resetLayout);
  connect(actions[Command::startPage], &QAction::triggered, parts_.centre, &CentrePage::toggleStart);
  connect(actions[Command::nextPane], &QAction::triggered, this, [this] { parts_.docks->cycle(1); });
  connect(actions[Command::previousPane], &QAction::triggered, this, [this] { parts_.docks->cycle(-1); });
  connect(actions[Command::fullScreen], &QAction::toggled, window, [window](bool on) {
    window->setWindowState(window->windowState().setFlag(Qt::WindowFullScreen, on));  // maximised again afterwards
  });
  connect(actions.layouts(), &QActionGroup::triggered, this,
          [this](QAction* action) { showLayout(static_cast<DockLayout>(action->data().toInt())); });
  connect(size_, &ViewSize::presenting, parts_.centre->plots(), &PlotArea::setKeyShown);
  // Its button is no place for the focus.
  connect(size_, &ViewSize::presenting, parts_.centre, &CentrePage::focusShown);
  connectThemes(actions);
}

void ViewCommands::connectThemes(const Actions& actions) {
  const QString key = QStringLiteral("view/theme");
  connect(actions.themes(), &QActionGroup::triggered, this, [this, key](QAction* action) {
    parts_.theme->setMode(static_cast<ThemeMode>(action->data().toInt()));
    parts_.settings->setValue(key, action->data());
  });
  const int mode = parts_.settings->value(key, 0).toInt();
  for (QAction* action : actions.themes()->actions())
    if (action->data().toInt() == mode) action->trigger();
}

void ViewCommands::leavePresenter() {
  size_->leavePresenter();
}

void ViewCommands::resetLayout() {
  showLayout(parts_.lessons->isOpen() ? DockLayout::lesson : DockLayout::studio);
}

void ViewCommands::showLayout(DockLayout layout) {
  size_->leavePresenter();
  size_->forgetDockSizes();
  if (parts_.lessons->isOpen() && layout == DockLayout::lesson) return parts_.lessons->arrange();
  placeDocks();
  applyLayout(window_, layout);
}

void ViewCommands::placeDocks() {
  window_->addToolBar(Qt::TopToolBarArea, parts_.run_bar);
  parts_.run_bar->show();
  parts_.docks->place();
  if (parts_.lessons->isOpen()) parts_.docks->find("lessonDock")->show();
  size_->setDockSizes(parts_.docks->sizes());
  parts_.centre->plots()->resetHeights();
}

}  // namespace accrue::ui
