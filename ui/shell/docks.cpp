// SPDX-License-Identifier: GPL-3.0-or-later
#include "docks.h"

#include <QApplication>
#include <QDockWidget>
#include <algorithm>

#include "runs/run_tag.h"
#include "widgets/dock_switch.h"
#include "widgets/dock_title.h"
#include "widgets/layout_restorer.h"
#include "widgets/panel_scroll.h"

namespace accrue::ui {

namespace {

bool isInFront(const DockPanel& panel) {
  return *panel.behind == 0;
}

bool isAtSide(const DockPanel& panel) {
  return panel.area == Qt::LeftDockWidgetArea || panel.area == Qt::RightDockWidgetArea;
}

}  // namespace

Docks::Docks(QMainWindow* window, std::function<void()> focus_centre)
    : QObject(window), window_(window), focus_centre_(std::move(focus_centre)) {
  window_->setDockOptions(QMainWindow::AnimatedDocks | QMainWindow::AllowNestedDocks | QMainWindow::AllowTabbedDocks);
  window_->setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
  window_->setCorner(Qt::BottomRightCorner, Qt::BottomDockWidgetArea);
  window_->setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
}

void Docks::add(const DockPanel& panel) {
  auto* dock = new QDockWidget(panel.title, window_);
  dock->setObjectName(QLatin1String(panel.name));
  dock->setWidget(new PanelScroll(panel.panel));
  auto* title = new DockTitle(dock);
  dock->setTitleBarWidget(title);
  if (panel.control) title->addControl(panel.control, panel.control_stretch);
  window_->addDockWidget(panel.area, dock);
  docks_.push_back({panel, dock, panel.speaks_of ? addRunTag(dock) : nullptr});
  if (!isInFront(panel)) window_->tabifyDockWidget(find(panel.behind), dock);
  if (panel.docked) panel.docked(dock);
}

void Docks::place() {
  forgetSavedLayout(window_);
  // Beside each other they would need more room than the screen has: none is shown before it is a tab.
  for (const Dock& each : docks_) {
    each.dock->hide();
    each.dock->setFloating(false);
    window_->addDockWidget(each.panel.area, each.dock);
  }
  for (const Dock& each : docks_)
    if (!isInFront(each.panel)) window_->tabifyDockWidget(find(each.panel.behind), each.dock);
  for (const Dock& each : docks_) each.dock->setVisible(!each.panel.on_demand);
  for (const Dock& each : docks_)
    if (isInFront(each.panel)) each.dock->raise();
  for (const Qt::Orientation direction : {Qt::Horizontal, Qt::Vertical}) {
    QList<QDockWidget*> docks;
    QList<int> lengths;
    for (const auto& [dock, size] : sizes()) {
      const int length = direction == Qt::Horizontal ? size.width() : size.height();
      if (length == 0) continue;
      docks.append(dock);
      lengths.append(length);
    }
    window_->resizeDocks(docks, lengths, direction);
  }
}

std::vector<std::pair<QPointer<QDockWidget>, QSize>> Docks::sizes() const {
  std::vector<std::pair<QPointer<QDockWidget>, QSize>> sizes;
  const int most_height = window_->height() * 27 / 100;  // the plots keep most of a low window
  for (const auto& [panel, dock, tag] : docks_)
    if (panel.size > 0)
      sizes.emplace_back(dock, isAtSide(panel) ? QSize(panel.size, 0) : QSize(0, std::min(panel.size, most_height)));
  return sizes;
}

QList<QDockWidget*> Docks::all() const {
  QList<QDockWidget*> all;
  for (const Dock& each : docks_) all.append(each.dock);
  return all;
}

QDockWidget* Docks::find(const char* name) const {
  const auto found =
      std::ranges::find(docks_, QLatin1String(name), [](const Dock& each) { return QLatin1String(each.panel.name); });
  Q_ASSERT(found != docks_.end());
  return found->dock;
}

void Docks::bringUp(const char* name) const {
  raiseDock(find(name));
}

void Docks::setRun(RunSeries* run) {
  for (const Dock& each : docks_)
    if (each.panel.set_run) each.panel.set_run(run);
  showTags();
}

void Docks::refresh() {
  for (const Dock& each : docks_)
    if (each.panel.refresh) each.panel.refresh();
  showTags();
}

void Docks::showTags() {
  for (const Dock& each : docks_)
    if (each.tag) each.tag->setRun(each.panel.speaks_of());
}

void Docks::setEditable(bool editable) {
  for (const Dock& each : docks_)
    if (each.panel.set_editable) each.panel.set_editable(editable);
}

bool Docks::takesFocus(const Dock& each) const {
  if (!each.panel.takes_focus) return false;
  return each.panel.on_demand ? each.dock->isVisible() : true;
}

void Docks::focus(std::size_t pane) {
  if (pane == 0) return focus_centre_();
  const Dock& each = docks_[pane - 1];
  if (!takesFocus(each)) return;
  bringToFront(each.dock);
  if (each.panel.focus) each.panel.focus();
}

std::size_t Docks::focusedPane() const {
  const QWidget* focus = QApplication::focusWidget();
  const auto found = std::ranges::find_if(docks_, [focus](const Dock& each) { return each.dock->isAncestorOf(focus); });
  return focus && found != docks_.end() ? static_cast<std::size_t>(found - docks_.begin()) + 1 : 0;
}

void Docks::cycle(int direction) {
  const std::size_t count = docks_.size() + 1;
  const std::size_t from = focusedPane();
  const bool in_lesson = find("lessonDock")->isVisible();
  // An empty pane takes no focus and is passed by, and so is one that a lesson has put away.
  for (std::size_t way = 1; way < count && focusedPane() == from; ++way) {
    const std::size_t next = (from + (direction > 0 ? way : count - way)) % count;
    if (next > 0 && docks_[next - 1].dock->isHidden() && in_lesson) continue;
    focus(next);
  }
}

}  // namespace accrue::ui
