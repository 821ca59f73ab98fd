// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts.h"

#include <QDockWidget>
#include <QStringList>

namespace accrue::ui {

namespace {

/// Docks of a layout by name, those in front last. Shares are of the window's width, and of its
/// height for the bottom docks.
struct Arrangement {
  QStringList left, right, bottom;
  double left_share, right_share, bottom_share;
};

Arrangement arrangementOf(DockLayout layout) {
  const auto names = [](std::initializer_list<const char*> docks) {
    QStringList list;
    for (const char* dock : docks) list << QLatin1String(dock);
    return list;
  };
  switch (layout) {
    case DockLayout::compare:
      return {{}, {}, names({"eventsDock", "runsDock"}), 0.0, 0.0, 0.42};
    case DockLayout::debug:
      return {{}, names({"ranksDock", "windowDock"}), names({"eventsDock", "pipelineDock"}), 0.0, 0.36, 0.36};
    case DockLayout::lesson:
      return {names({"setupDock"}), names({"windowDock"}), {}, 0.3, 0.28, 0.0};
    case DockLayout::studio:
      break;
  }
  return {};
}

}  // namespace

void applyLayout(QMainWindow* window, DockLayout layout) {
  if (layout == DockLayout::studio) return;
  const Arrangement wanted = arrangementOf(layout);
  const QStringList shown = wanted.left + wanted.right + wanted.bottom;
  for (QDockWidget* dock : window->findChildren<QDockWidget*>()) dock->setVisible(shown.contains(dock->objectName()));
  const auto give = [window](const QStringList& names, double share, Qt::Orientation direction) {
    QDockWidget* front = nullptr;
    for (const QString& name : names) {
      auto* dock = window->findChild<QDockWidget*>(name);
      if (!dock) continue;
      front = dock;
      dock->raise();
    }
    const int whole = direction == Qt::Horizontal ? window->width() : window->height();
    if (front) window->resizeDocks({front}, {static_cast<int>(share * whole)}, direction);
  };
  give(wanted.left, wanted.left_share, Qt::Horizontal);
  give(wanted.right, wanted.right_share, Qt::Horizontal);
  give(wanted.bottom, wanted.bottom_share, Qt::Vertical);
}

}  // namespace accrue::ui
