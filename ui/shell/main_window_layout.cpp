// SPDX-License-Identifier: GPL-3.0-or-later
// The layout of MainWindow: saved, restored, reset; panes by keyboard.
#include <QAbstractScrollArea>
#include <QApplication>
#include <QDockWidget>
#include <QKeyEvent>
#include <QScreen>
#include <QSettings>
#include <QSplitter>
#include <QToolBar>
#include <algorithm>

#include "centre_page.h"
#include "dock_height.h"
#include "dock_switch.h"
#include "kit/clock.h"
#include "kit/layout_restorer.h"
#include "layouts.h"
#include "live/accumulation_panel.h"
#include "live/inspector_panel.h"
#include "live/run_control.h"
#include "main_window.h"
#include "plan/pipeline_panel.h"
#include "plan/planner_panel.h"
#include "plan/plugin_rack.h"
#include "plan/rank_grid_panel.h"
#include "plots/plot_area.h"
#include "runs/events_panel.h"
#include "runs/runs_panel.h"
#include "setup/data_panel.h"
#include "setup/field_form.h"
#include "setup/setup_panel.h"
#include "start_page.h"
#include "teach/bug_gallery_panel.h"
#include "teach/lesson_desk.h"
#include "teach/lesson_panel.h"
#include "view_size.h"

namespace accrue::ui {

namespace {

constexpr auto geometry_key = "layout/geometry";
constexpr auto state_key = "layout/state";
constexpr auto size_key = "layout/size";
constexpr auto plots_key = "layout/plots";
constexpr auto folds_key = "layout/folds";
constexpr auto clock_key = "plots/clock";
constexpr auto log_key = "plots/logY";
constexpr auto smoothing_key = "plots/smoothing";
constexpr auto seeds_key = "plots/groupSeeds";

/// The centre, set-up, runs, events, plug-ins, ranks, pipeline, data, inspector, planner, lesson, gallery.
constexpr int pane_count = 12;

}  // namespace

void MainWindow::restoreLayout() {
  connect(pipeline_, &PipelinePanel::roomWanted, this, [this](int missing) {
    if (!pipeline_dock_->isFloating())
      resizeDocks({pipeline_dock_}, {heightWithTabs(*pipeline_dock_) + missing}, Qt::Vertical);
  });
  connect(pipeline_dock_, &QDockWidget::visibilityChanged, pipeline_, &PipelinePanel::askForRoom);
  const QSettings& settings = *parts_.settings;
  auto* splitter = centre_->plots()->findChild<QSplitter*>(QStringLiteral("plotSplitter"));
  if (!restoreGeometry(settings.value(QLatin1String(geometry_key)).toByteArray())) {
    // The offscreen platform reports a screen of 800 x 800; pictures of the window should have the usual size.
    const bool real_screen = screen() && QGuiApplication::platformName() != QLatin1String("offscreen");
    const QSize room = real_screen ? screen()->availableGeometry().size() : QSize(1366, 768);
    const QSize whole(1366, 768);
    resize(whole.boundedTo(room));
    // The frame's size is unknown before the window is shown: if it might not fit the screen, the window is maximised.
    const QSize frame(16, 48);
    if (real_screen && (whole + frame).boundedTo(room) != whole + frame) setWindowState(Qt::WindowMaximized);
  }
  const QByteArray state = settings.value(QLatin1String(state_key)).toByteArray();
  if (restoreState(state, layout_version)) {
    const QByteArray plots_state = settings.value(QLatin1String(plots_key)).toByteArray();
    new LayoutRestorer(this, settings.value(QLatin1String(size_key)).toSize(), [this, splitter, state, plots_state] {
      restoreState(state, layout_version);
      splitter->restoreState(plots_state);
    });
  } else {
    resetLayout();
  }
  const QSignalBlocker quiet(actions_.fullScreen);
  actions_.fullScreen->setChecked(isFullScreen());
  setup_->form()->restoreFoldState(settings.value(QLatin1String(folds_key)).toStringList());
  PlotArea* plots = centre_->plots();
  plots->setClock(clockFromKey(settings.value(QLatin1String(clock_key), clockKey(Clock::update)).toString()));
  plots->setLogY(settings.value(QLatin1String(log_key), false).toBool());
  plots->setGroupSeeds(settings.value(QLatin1String(seeds_key), true).toBool());
  plots->setSmoothing(settings.value(QLatin1String(smoothing_key), plots->smoothing()).toDouble());
  // A window that was last on a screen that no longer exists is moved to a visible one.
  if (screen() && !screen()->availableGeometry().intersects(frameGeometry()))
    move(screen()->availableGeometry().topLeft());
}

void MainWindow::saveLayout() {
  QSettings& settings = *parts_.settings;
  settings.setValue(QLatin1String(geometry_key), saveGeometry());
  settings.setValue(QLatin1String(state_key), saveState(layout_version));
  settings.setValue(QLatin1String(size_key), size());
  const auto* splitter = centre_->plots()->findChild<QSplitter*>(QStringLiteral("plotSplitter"));
  settings.setValue(QLatin1String(plots_key), splitter->saveState());
  settings.setValue(QLatin1String(folds_key), setup_->form()->foldState());
  const PlotArea* plots = centre_->plots();
  settings.setValue(QLatin1String(clock_key), clockKey(plots->clock()));
  settings.setValue(QLatin1String(log_key), plots->logY());
  settings.setValue(QLatin1String(smoothing_key), plots->smoothing());
  settings.setValue(QLatin1String(seeds_key), plots->groupSeeds());
  settings.sync();
}

void MainWindow::resetLayout() {
  view_size_->leavePresenter();
  view_size_->forgetDockSizes();
  if (lesson_desk_->isOpen()) return lesson_desk_->arrange();
  placeDocks();
}

void MainWindow::showLayout(WindowLayout layout) {
  view_size_->leavePresenter();
  view_size_->forgetDockSizes();
  if (lesson_desk_->isOpen() && layout == WindowLayout::lesson) {
    lesson_desk_->arrange();
    return;
  }
  placeDocks();
  applyLayout(this, layout);
}

void MainWindow::placeDocks() {
  forgetSavedLayout(this);
  addToolBar(Qt::TopToolBarArea, run_bar_);
  run_bar_->show();
  const std::pair<QDockWidget*, Qt::DockWidgetArea> places[] = {
      {setup_dock_, Qt::LeftDockWidgetArea},      {window_dock_, Qt::RightDockWidgetArea},
      {runs_dock_, Qt::BottomDockWidgetArea},     {events_dock_, Qt::BottomDockWidgetArea},
      {rack_dock_, Qt::LeftDockWidgetArea},       {ranks_dock_, Qt::RightDockWidgetArea},
      {data_dock_, Qt::RightDockWidgetArea},      {pipeline_dock_, Qt::BottomDockWidgetArea},
      {inspector_dock_, Qt::RightDockWidgetArea}, {planner_dock_, Qt::LeftDockWidgetArea},
      {lesson_dock_, Qt::LeftDockWidgetArea},     {gallery_dock_, Qt::LeftDockWidgetArea}};
  // Beside each other they would need more room than the screen has: none is shown before it is a tab.
  for (const auto& [dock, area] : places) {
    dock->hide();
    dock->setFloating(false);
    addDockWidget(area, dock);
  }
  tabifyDocks();
  for (const auto& [dock, area] : places) dock->setVisible(dock != lesson_dock_ && dock != gallery_dock_);
  for (QDockWidget* front : {runs_dock_, setup_dock_, window_dock_}) front->raise();
  lesson_dock_->setVisible(lesson_desk_->isOpen());
  constexpr int setup_width = 368;
  constexpr int window_width = 280;
  const int runs_height = std::min(208, height() * 27 / 100);  // the plots keep most of a low window
  resizeDocks({setup_dock_, window_dock_}, {setup_width, window_width}, Qt::Horizontal);
  resizeDocks({runs_dock_}, {runs_height}, Qt::Vertical);
  view_size_->setDockSizes(
      {{setup_dock_, {setup_width, 0}}, {window_dock_, {window_width, 0}}, {runs_dock_, {0, runs_height}}});
  centre_->plots()->resetHeights();
}

void MainWindow::tabifyDocks() {
  for (const auto& [front, behind] :
       {std::pair(runs_dock_, events_dock_), std::pair(runs_dock_, pipeline_dock_), std::pair(setup_dock_, rack_dock_),
        std::pair(window_dock_, inspector_dock_), std::pair(window_dock_, ranks_dock_),
        std::pair(window_dock_, data_dock_), std::pair(setup_dock_, planner_dock_),
        std::pair(setup_dock_, lesson_dock_), std::pair(setup_dock_, gallery_dock_)}) {
    tabifyDockWidget(front, behind);
    front->raise();
  }
}

void MainWindow::focusPane(int pane) {
  switch (pane) {
    case 0:
      if (centre_->isStartShown())
        centre_->start()->focusDefault();
      else
        centre_->plots()->setFocus(Qt::ShortcutFocusReason);
      break;
    case 1:
      bringToFront(setup_dock_);
      setup_->focusSearch();
      break;
    case 2:
      bringToFront(runs_dock_);
      runs_->focusTable();
      break;
    case 3:
      bringToFront(events_dock_);
      if (auto* view = events_->findChild<QAbstractScrollArea*>(QStringLiteral("eventsView")))
        view->setFocus(Qt::ShortcutFocusReason);
      break;
    case 4:
      bringToFront(rack_dock_);
      rack_->focusFirst();
      break;
    case 5:
      bringToFront(ranks_dock_);
      rank_panel_->focusCells();
      break;
    case 6:
      bringToFront(pipeline_dock_);
      pipeline_->planned()->setFocus(Qt::ShortcutFocusReason);
      break;
    case 7:
      bringToFront(data_dock_);
      data_panel_->focusSample();
      break;
    case 8:
      bringToFront(inspector_dock_);
      inspector_->focusPhases();
      break;
    case 9:
      bringToFront(planner_dock_);
      break;
    case 10:
      if (lesson_dock_->isVisible()) lesson_panel_->focusFirst();
      break;
    case 11:
      if (gallery_dock_->isVisible()) gallery_->focusList();
      break;
    default:
      break;
  }
}

int MainWindow::focusedPane() const {
  const QWidget* focus = QApplication::focusWidget();
  const QWidget* panes[] = {setup_dock_, runs_,      events_,  rack_,         rank_panel_, pipeline_dock_,
                            data_panel_, inspector_, planner_, lesson_panel_, gallery_};
  for (int pane = 0; focus && pane < pane_count - 1; ++pane)
    if (panes[pane]->isAncestorOf(focus)) return pane + 1;
  return 0;
}

void MainWindow::cyclePanes(int direction) {
  const int from = focusedPane();
  const QDockWidget* docks[pane_count] = {nullptr,         setup_dock_,   runs_dock_,     events_dock_,
                                          rack_dock_,      ranks_dock_,   pipeline_dock_, data_dock_,
                                          inspector_dock_, planner_dock_, lesson_dock_,   gallery_dock_};
  // An empty pane takes no focus and is passed by, and so is what a lesson has put away.
  for (int way = 1; way < pane_count && focusedPane() == from; ++way) {
    const int next = (from + way * (direction + pane_count)) % pane_count;
    if (docks[next] && docks[next]->isHidden() && lesson_dock_->isVisible()) continue;
    focusPane(next);
  }
}

void MainWindow::keyPressEvent(QKeyEvent* event) {
  const QWidget* focus = QApplication::focusWidget();
  const bool in_view = focus && (centre_->plots()->isAncestorOf(focus) || focus == centre_->plots() ||
                                 accumulation_panel_->isAncestorOf(focus));
  if (event->key() == Qt::Key_Space && event->modifiers() == Qt::NoModifier && in_view) {
    parts_.control->togglePause();
    return;
  }
  QMainWindow::keyPressEvent(event);
}

bool MainWindow::focusNextPrevChild(bool next) {
  const QWidget* focus = focusWidget();
  if (!focus || focus->isEnabled()) return QMainWindow::focusNextPrevChild(next);
  focusPane(0);
  return true;
}

}  // namespace accrue::ui
