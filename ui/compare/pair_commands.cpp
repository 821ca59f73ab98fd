// SPDX-License-Identifier: GPL-3.0-or-later
#include "pair_commands.h"

#include "kit/actions.h"
#include "live/run_control.h"
#include "live/run_queue.h"
#include "live/training_commands.h"
#include "pair_guide.h"
#include "paired_run.h"
#include "runs/run_library.h"
#include "runs/runs_panel.h"

namespace accrue::ui {

PairCommands::PairCommands(const Actions& actions, const Parts& parts, QWidget* window)
    : QObject(window), actions_(actions), parts_(parts) {
  auto* guide = new PairGuide(actions, parts.runs, parts.library, parts.plots, parts.bar, window);
  auto* paired = new PairedRun({parts.control, parts.companion, parts.queue, parts.preflight, parts.library, parts.runs,
                                parts.files, guide, parts.bar},
                               this);
  connect(actions[Command::pairedRun], &QAction::triggered, this, [this, paired] {
    if (parts_.training->formHolds()) paired->start();
  });
  connect(actions[Command::trainPair], &QAction::triggered, this, [this, paired] {
    if (parts_.training->formHolds()) paired->startTogether();
  });
  connect(parts_.runs, &RunsPanel::shownRunsChanged, this, &PairCommands::showEnabled);
  connect(parts_.control, &RunControl::stateChanged, this, &PairCommands::showEnabled);
  connect(parts_.library, &RunLibrary::refreshed, this, &PairCommands::showEnabled);
  connect(parts_.library, &RunLibrary::loaded, this, &PairCommands::showEnabled);
  connect(parts_.queue, &RunQueue::changed, this, &PairCommands::showEnabled);
  connect(parts_.queue, &RunQueue::finished, this, &PairCommands::showEnabled);
  showEnabled();
}

void PairCommands::showEnabled() {
  const RunSeries* run = parts_.runs->currentRun();
  const bool possible = parts_.control->isIdle() && run && run->spec() && !parts_.queue->isActive();
  for (const Command pair : {Command::pairedRun, Command::trainPair}) actions_[pair]->setEnabled(possible);
}

}  // namespace accrue::ui
