// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot_menu.h"

#include <QAction>
#include <QMenu>
#include <QSettings>

#include "canvas/plot_view.h"
#include "kit/actions.h"
#include "plot_area.h"

namespace accrue::ui {

namespace {

constexpr auto shown_key = "plots/shown";

}  // namespace

PlotMenu::PlotMenu(const Actions& actions, PlotArea* plots, QMenu* plot_menu, QSettings* settings, QObject* parent)
    : QObject(parent), actions_(actions), plots_(plots) {
  auto* shown = new QMenu(tr("&Plots"), plot_menu);
  shown->setObjectName(QStringLiteral("shownPlotsMenu"));
  fill(shown);
  plot_menu->insertMenu(plot_menu->actions().value(0), shown);
  plot_menu->insertSeparator(plot_menu->actions().value(1));
  connect(plots_, &PlotArea::menuRequested, this, &PlotMenu::showMenu);
  connect(actions_[Command::resetLayout], &QAction::triggered, this, [this] { plots_->setShownPlots({}); });
  plots_->setShownPlots(settings->value(QLatin1String(shown_key)).toStringList());
  connect(plots_, &PlotArea::shownPlotsChanged, this,
          [this, settings] { settings->setValue(QLatin1String(shown_key), plots_->shownPlots()); });
}

void PlotMenu::fill(QMenu* menu) {
  for (PlotView* view : plots_->allViews()) {
    QAction* entry = menu->addAction(view->header().title());
    entry->setObjectName(QStringLiteral("plotAction.%1").arg(view->objectName()));
    entry->setCheckable(true);
    connect(entry, &QAction::triggered, this, [this, view](bool on) { plots_->setPlotShown(view, on); });
    const auto show = [this, entry, view] {
      entry->setText(view->header().title());
      entry->setChecked(plots_->isPlotShown(view));
      // One plot stays: without any there would be no place to bring one back.
      entry->setEnabled(!entry->isChecked() || plots_->shownPlots().size() > 1);
    };
    connect(menu, &QMenu::aboutToShow, entry, show);
    connect(plots_, &PlotArea::shownPlotsChanged, entry, show);
    show();
  }
}

void PlotMenu::showMenu(PlotView* view, const QPoint& at) {
  QMenu menu;
  menu.setObjectName(QStringLiteral("plotMenuHere"));
  fill(menu.addMenu(tr("&Plots")));
  const qsizetype place = plots_->shownPlots().indexOf(view->objectName());
  QAction* remove = menu.addAction(tr("&Remove this plot"));
  remove->setEnabled(plots_->shownPlots().size() > 1);
  QAction* up = menu.addAction(tr("Move &up"));
  up->setEnabled(place > 0);
  QAction* down = menu.addAction(tr("Move &down"));
  down->setEnabled(place + 1 < plots_->shownPlots().size());
  menu.addSeparator();
  QAction* table = menu.addAction(actions_[Command::showTable]->text());
  menu.addSeparator();
  menu.addActions({actions_[Command::zoomWindow], actions_[Command::fit]});
  menu.addSeparator();
  menu.addActions({actions_[Command::exportPlot], actions_[Command::copyFigure]});
  const QAction* chosen = menu.exec(at);
  if (chosen == remove) plots_->setPlotShown(view, false);
  if (chosen == up) plots_->movePlot(view, -1);
  if (chosen == down) plots_->movePlot(view, 1);
  if (chosen == table) plots_->showTable(view);
}

}  // namespace accrue::ui
