// SPDX-License-Identifier: GPL-3.0-or-later
// What MainWindow shows of the runs as they go on: the frame's numbers, the title, and what can be done now.
#include "centre_page.h"
#include "kit/message_bar.h"
#include "kit/theme.h"
#include "live/accumulation_panel.h"
#include "live/close_guard.h"
#include "live/inspector_panel.h"
#include "live/run_control.h"
#include "live/run_queue.h"
#include "live/status_row.h"
#include "main_window.h"
#include "plan/pipeline_panel.h"
#include "plan/rank_grid_panel.h"
#include "plots/plot_area.h"
#include "runs/events_panel.h"
#include "runs/run_library.h"
#include "runs/run_tag.h"
#include "runs/runs_panel.h"
#include "series/run_text.h"
#include "setup/arithmetic_panel.h"
#include "setup/field_form.h"
#include "setup/setup_panel.h"
#include "setup/spec_document.h"

namespace accrue::ui {

namespace {

RunHost hostOf(const RunSeries* run, const RunControl& control, const CloseGuard& places) {
  if (run && run == control.run() && control.attached())
    return control.controls() ? RunHost::attached : RunHost::viewed;
  return run && is_live(run->state()) && !places.have(run) ? RunHost::unfollowed : RunHost::here;
}

}  // namespace

void MainWindow::tick() {
  if (numbers_moved_) {
    numbers_moved_ = false;
    const RunSeries* run = focusedRun();
    if (!run && parts_.control->isLive()) run = parts_.control->run();
    const bool followed = run && run == parts_.control->run();
    // Where no run is shown, the state is that of the set-up, whatever became of the run before.
    const RunState state = parts_.control->state() == RunState::preflight || followed ? parts_.control->state()
                           : run                                                      ? run->state()
                                                                                      : RunState::idle;
    const bool other = parts_.control->isLive() && !followed;
    status_->refresh(run, state, hostOf(run, *parts_.control, *close_guard_),
                     followed ? QString::fromStdString(parts_.control->ranks().backend()) : QString(),
                     setup_->arithmetic()->obstacle());
    status_->showOther(other ? parts_.control->run() : nullptr);
    accumulation_panel_->refresh();
    inspector_->refresh();
    inspector_tag_->setRun(parts_.control->run());
    rank_panel_->refresh();
    rank_tag_->setRun(rank_panel_->liveRun());
    pipeline_->refresh();
  }
  if (!isVisible() || isMinimized()) return;
  centre_->plots()->tick();
  status_->countFrame();
}

void MainWindow::showTitle() {
  // The title shows the run's state in the task bar when the window is hidden.
  const RunControl& control = *parts_.control;
  const QString doing =
      control.isLive() ? QStringLiteral(" (%1)").arg(stateWord(control.run(), control.state())) : QString();
  //: Window title; [*] stands for "has unsaved edits", %2 for what the run does
  const QString title = tr("%1[*]%2 - Accrue").arg(parts_.document->displayName(), doing);
  setWindowTitle(title);
  setWindowModified(parts_.document->isModified());
  setWindowFilePath(parts_.document->filePath());
  // The file's path must not replace the title.
  setWindowTitle(title);
}

void MainWindow::showState() {
  const RunActions possible = parts_.control->actions();
  const auto enable = [&possible](QAction* action, RunAction what) { action->setEnabled(possible.contains(what)); };
  enable(actions_.run, RunAction::run);
  enable(actions_.demo, RunAction::run);
  for (QAction* all : {actions_.runAllDialects, actions_.runAllOptimizers})
    all->setEnabled(possible.contains(RunAction::run) && !queue_->isActive());
  enable(actions_.runPaused, RunAction::run);
  for (QAction* step : {actions_.stepPhase, actions_.stepMicro})
    step->setEnabled(possible.contains(RunAction::step) || actions_.runPaused->isEnabled());
  enable(actions_.stepUpdate, RunAction::step);
  if (queue_->isActive())
    for (QAction* start : {actions_.run, actions_.runPaused}) start->setEnabled(false);
  const bool stopping = parts_.control->state() == RunState::stopping;
  actions_.stop->setEnabled(possible.contains(stopping ? RunAction::kill : RunAction::stop));
  enable(actions_.kill, RunAction::kill);
  enable(actions_.checkpoint, RunAction::checkpoint);
  enable(actions_.stopUnsaved, RunAction::stopUnsaved);
  enable(actions_.setSteps, RunAction::setSteps);
  showContinuations();
  const bool paused = possible.contains(RunAction::proceed);
  actions_.pause->setEnabled(paused || possible.contains(RunAction::pause));
  // The key that starts a run also continues it, as in debuggers.
  const QKeySequence own = actions_.pause->shortcut();
  actions_.pause->setShortcuts(paused ? QList{own, actions_.run->shortcut()} : QList{own});
  actions_.pause->setIconText(paused ? tr("Continue") : tr("Pause"));
  actions_.pause->setText(paused ? tr("&Continue") : tr("&Pause"));
  actions_.pause->setIcon(themedIcon(paused ? QStringLiteral("continue") : QStringLiteral("pause")));
  actions_.stop->setIconText(stopping ? tr("Kill") : tr("Stop"));
  actions_.stop->setText(stopping ? tr("&Kill (second press)") : tr("&Stop"));
  showEditsWaiting();
  const bool editable = possible.contains(RunAction::edit) || parts_.control->isLive();
  setup_->form()->setEditable(editable);
  pipeline_->setEditable(editable);
  numbers_moved_ = true;
  showTitle();
}

void MainWindow::showEditsWaiting() {
  const auto edits = parts_.control->editsWaiting();
  setup_->form()->setEditsWaiting(edits);
  const auto count = edits.size();
  actions_.run->setIconText(count == 0 ? tr("Run") : tr("Run (%1)").arg(count));
  const QString sentence = count == 0   ? tr("Check the spec and train")
                           : count == 1 ? tr("1 edit waits for the next run")
                                        : tr("%1 edits wait for the next run").arg(count);
  actions_.run->setStatusTip(sentence);
  //: Tooltip of a command: what it does (its key)
  actions_.run->setToolTip(tr("%1 (%2)").arg(sentence, actions_.run->shortcut().toString(QKeySequence::NativeText)));
}

void MainWindow::showContinuations() {
  const RunSeries* run = focusedRun();
  const RunControl& control = *parts_.control;
  const bool idle = !control.isLive() && control.state() != RunState::preflight;
  runs_->setBusy(!idle);
  // The library may not know yet that the run which ended here is over.
  const bool elsewhere = run && run != control.run() && parts_.library->liveElsewhere().contains(run->folder());
  actions_.attach->setEnabled(idle && elsewhere);
  const bool resumable = idle && run && !run->isLive() && !parts_.library->isImported(run->folder());
  actions_.resume->setEnabled(resumable && !elsewhere && run->outcome().outcome != QLatin1String("finished"));
  actions_.branch->setEnabled(resumable);
  for (QAction* pair : {actions_.pairedRun, actions_.trainPair})
    pair->setEnabled(idle && run && run->spec() && !queue_->isActive());
}

void MainWindow::showRuns() {
  centre_->messages()->withdraw(QStringLiteral("opened"));
  const QList<RunSeries*> shown = runs_->shownRuns();
  parts_.library->assignColors(shown);
  for (RunSeries* run : shown) parts_.library->load(run);
  RunSeries* focused = focusedRun();
  parts_.library->load(focused);
  centre_->plots()->setRuns(shown);
  centre_->plots()->setFocusedRun(focused);
  events_->setRun(focused);
  accumulation_panel_->setRun(focused);
  rank_panel_->setRun(focused);
  for (RunTag* tag : run_tags_) tag->setRun(focused);
  pipeline_->setRun(focused);
  const bool any = focused != nullptr;
  actions_.runFolder->setEnabled(any);
  actions_.copyCommand->setEnabled(any);
  actions_.exportTrace->setEnabled(any);
  actions_.exportScalars->setEnabled(any);
  showContinuations();
  numbers_moved_ = true;
}

}  // namespace accrue::ui
