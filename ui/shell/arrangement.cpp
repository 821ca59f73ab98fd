// SPDX-License-Identifier: GPL-3.0-or-later
#include "arrangement.h"

#include <QDockWidget>
#include <QJsonDocument>
#include <QJsonObject>
#include <QList>
#include <algorithm>
#include <array>
#include <utility>

#include "kit/dock_height.h"
#include "plots/plot_area.h"

namespace accrue::ui {

namespace {

constexpr int arrangement_version = 1;

constexpr std::array<std::pair<Qt::DockWidgetArea, const char*>, 4> areas = {{{Qt::LeftDockWidgetArea, "left"},
                                                                              {Qt::RightDockWidgetArea, "right"},
                                                                              {Qt::TopDockWidgetArea, "top"},
                                                                              {Qt::BottomDockWidgetArea, "bottom"}}};

QString areaName(Qt::DockWidgetArea area) {
  for (const auto& [each, name] : areas)
    if (each == area) return QLatin1String(name);
  return {};
}

/// Whether a dock that is shown is the one of its tabs that is seen.
bool isInFront(const QDockWidget& dock) {
  return !dock.visibleRegion().isEmpty();
}

/// Whether it is shown depends on an open lesson or bug, not on the layout.
bool isOfALesson(const QDockWidget& dock) {
  return dock.objectName() == QLatin1String("lessonDock") || dock.objectName() == QLatin1String("galleryDock");
}

bool isLevel(Qt::DockWidgetArea area) {
  return area == Qt::LeftDockWidgetArea || area == Qt::RightDockWidgetArea;
}

}  // namespace

QByteArray describeArrangement(const QMainWindow& window, const PlotArea& plots) {
  QJsonObject docks;
  for (const QDockWidget* dock : window.findChildren<QDockWidget*>()) {
    if (isOfALesson(*dock)) continue;
    const Qt::DockWidgetArea area = window.dockWidgetArea(const_cast<QDockWidget*>(dock));
    const bool level = isLevel(area);
    const double whole = level ? window.width() : window.height();
    docks[dock->objectName()] =
        QJsonObject{{QStringLiteral("shown"), !dock->isHidden()},
                    {QStringLiteral("area"), areaName(area)},
                    {QStringLiteral("front"), isInFront(*dock)},
                    {QStringLiteral("share"), (level ? dock->width() : heightWithTabs(*dock)) / whole}};
  }
  const QJsonObject drawn{{QStringLiteral("clock"), clockKey(plots.clock())},
                          {QStringLiteral("log_y"), plots.logY()},
                          {QStringLiteral("smoothing"), plots.smoothing()}};
  return QJsonDocument(QJsonObject{{QStringLiteral("accrue_layout"), arrangement_version},
                                   {QStringLiteral("docks"), docks},
                                   {QStringLiteral("plots"), drawn}})
      .toJson();
}

bool applyArrangement(QMainWindow& window, PlotArea& plots, const QByteArray& text) {
  const QJsonObject layout = QJsonDocument::fromJson(text).object();
  if (layout.value(QLatin1String("accrue_layout")).toInt() != arrangement_version) return false;
  const QJsonObject docks = layout.value(QLatin1String("docks")).toObject();
  QList<QDockWidget*> front;
  for (QDockWidget* dock : window.findChildren<QDockWidget*>()) {
    const QJsonObject wanted = docks.value(dock->objectName()).toObject();
    if (wanted.isEmpty() || isOfALesson(*dock)) continue;
    for (const auto& [area, name] : areas)
      if (wanted.value(QLatin1String("area")).toString() == QLatin1String(name) && window.dockWidgetArea(dock) != area)
        window.addDockWidget(area, dock);
    dock->setVisible(wanted.value(QLatin1String("shown")).toBool(!dock->isHidden()));
    if (wanted.value(QLatin1String("front")).toBool()) front.append(dock);
  }
  for (QDockWidget* dock : front) {
    dock->raise();
    const bool level = isLevel(window.dockWidgetArea(dock));
    constexpr double least = 0.05;
    constexpr double most = 0.8;
    const double share = docks.value(dock->objectName()).toObject().value(QLatin1String("share")).toDouble();
    if (!(share >= least && share <= most)) continue;
    const int whole = level ? window.width() : window.height();
    window.resizeDocks({dock}, {static_cast<int>(share * whole)}, level ? Qt::Horizontal : Qt::Vertical);
  }
  const QJsonObject drawn = layout.value(QLatin1String("plots")).toObject();
  plots.setClock(clockFromKey(drawn.value(QLatin1String("clock")).toString(clockKey(plots.clock()))));
  plots.setLogY(drawn.value(QLatin1String("log_y")).toBool(plots.logY()));
  plots.setSmoothing(drawn.value(QLatin1String("smoothing")).toDouble(plots.smoothing()));
  return true;
}

}  // namespace accrue::ui
