// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_view.h"

#include "centre_page.h"
#include "docks.h"
#include "live/run_control.h"
#include "plots/plot_area.h"
#include "runs/events_panel.h"
#include "runs/run_library.h"
#include "runs/run_overlay.h"
#include "runs/runs_panel.h"
#include "series/frame_clock.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

RunView::RunView(const Parts& parts, QObject* parent)
    : QObject(parent), parts_(parts), overlay_(new RunOverlay(parts.runs, parts.centre->messages(), this)) {
  CentrePage* centre = parts_.centre;
  connect(parts_.control, &RunControl::runBegun, this, &RunView::takeBegun);
  connect(parts_.control, &RunControl::changed, parts_.frames, &FrameClock::noteMoved);
  connect(parts_.control, &RunControl::stateChanged, parts_.frames, &FrameClock::noteMoved);
  connect(parts_.library, &RunLibrary::loaded, parts_.frames, &FrameClock::noteMoved);
  connect(parts_.library, &RunLibrary::opened, this, &RunView::takeOpened);
  connect(parts_.runs, &RunsPanel::shownRunsChanged, this, &RunView::showRuns);
  connect(parts_.runs, &RunsPanel::lookedAt, centre, &CentrePage::showPlots);
  connect(parts_.runs, &RunsPanel::activated, centre, [centre] {
    centre->showPlots();
    centre->plots()->fit();
    centre->plots()->setFocus();
  });
  connect(parts_.events, &EventsPanel::updateRequested, centre, [centre](qint64 update) {
    if (centre->plots()->clock() == Clock::update) centre->plots()->goTo(static_cast<double>(update));
  });
  const RunTableModel* table = parts_.library->table();
  connect(table, &QAbstractItemModel::rowsInserted, this, &RunView::showWhetherAny);
  connect(table, &QAbstractItemModel::rowsRemoved, this, &RunView::showWhetherAny);
  connect(table, &QAbstractItemModel::modelReset, this, &RunView::showWhetherAny);
  showWhetherAny();
}

void RunView::showWhetherAny() {
  parts_.centre->showEmptyText(parts_.library->table()->rowCount() > 0);
}

void RunView::takeBegun(RunSeries* run) {
  parts_.centre->plots()->fit();  // a view zoomed into another run could hide the new one
  parts_.centre->showPlots();
  overlay_->show(run);
}

void RunView::takeOpened(RunSeries* run) {
  parts_.centre->showPlots();
  overlay_->show(run);
  // A fitted view grows while the run's events arrive.
  if (!parts_.control->isLive()) parts_.centre->plots()->fit();
}

void RunView::compare(const QList<RunSeries*>& runs) {
  parts_.runs->showOnly(runs);
  parts_.centre->showPlots();
  parts_.centre->plots()->setClock(Clock::sample);
  parts_.centre->plots()->fit();
}

void RunView::showRuns() {
  parts_.centre->messages()->withdraw(QStringLiteral("opened"));
  const QList<RunSeries*> shown = parts_.runs->shownRuns();
  parts_.library->assignColors(shown);
  for (RunSeries* run : shown) parts_.library->load(run);
  RunSeries* focused = parts_.runs->currentRun();
  parts_.library->load(focused);
  parts_.centre->plots()->setRuns(shown);
  parts_.centre->plots()->setFocusedRun(focused);
  parts_.docks->setRun(focused);
  parts_.frames->noteMoved();
}

}  // namespace accrue::ui
