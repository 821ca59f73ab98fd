// SPDX-License-Identifier: GPL-3.0-or-later
#include "variant_commands.h"

#include "dialect_panel.h"
#include "iso_batch_panel.h"
#include "kit/actions.h"
#include "kit/raise.h"
#include "live/run_control.h"
#include "live/run_queue.h"
#include "live/training_commands.h"
#include "plots/plot_area.h"
#include "queue_commands.h"
#include "queue_list.h"
#include "runs/runs_panel.h"
#include "setup/field_form.h"
#include "setup/setup_panel.h"

namespace accrue::ui {

VariantCommands::VariantCommands(const Actions& actions, const Parts& parts, QWidget* window)
    : QObject(window),
      actions_(actions),
      parts_(parts),
      window_(window),
      dialects_(new DialectPlans(parts.document, parts.preflight, inDialects, this)),
      dialect_runs_(runsOf(dialects_, parts.document, parts.queue, parts.bar)),
      optimizer_runs_(runsOf(new OptimizerPlans(parts.document, parts.preflight, withOptimizers, this), parts.document,
                             parts.queue, parts.bar)),
      products_(new IsoPlans(parts.document, parts.preflight, asProducts, this)),
      product_runs_(new ComparedRuns(parts.document, products_, {}, parts.queue, parts.bar, this)),
      queue_commands_(new QueueCommands(
          actions,
          {parts.document, parts.preflight, parts.control, parts.library, parts.queue, parts.dialogs, parts.bar},
          window)) {
  parts_.setup->form()->addTitleAction(QStringLiteral("accumulation"), actions_[Command::compareDialects]);
  parts_.runs->addBelow(new QueueList(parts_.queue, parts_.runs));
  connectActions();
  for (ComparedRuns* runs : {dialect_runs_, optimizer_runs_, product_runs_, queue_commands_->seedRuns()}) follow(runs);
  connect(optimizer_runs_, &ComparedRuns::aboutToBegin, this,
          [this] { parts_.plots->showBesideLoss(QLatin1String(updateNormPlot)); });
  connect(parts_.control, &RunControl::stateChanged, this, &VariantCommands::showEnabled);
  connect(parts_.queue, &RunQueue::changed, this, &VariantCommands::showEnabled);
  connect(parts_.queue, &RunQueue::finished, this, &VariantCommands::showEnabled);
  showEnabled();
}

void VariantCommands::connectActions() {
  const auto on = [this](Command command, auto act) { connect(actions_[command], &QAction::triggered, this, act); };
  const auto on_valid_form = [this, on](Command command, auto act) {
    on(command, [this, act] {
      if (parts_.training->formHolds()) act();
    });
  };
  on(Command::compareDialects, [this] { showDialects(); });
  on(Command::isoBatch, [this] { showProducts(); });
  on_valid_form(Command::runAllDialects, [this] { dialect_runs_->start(); });
  on_valid_form(Command::runAllOptimizers, [this] { optimizer_runs_->start(); });
  on_valid_form(Command::queueRun, [this] { queue_commands_->addSetUp(); });
  on_valid_form(Command::runSeeds, [this] { queue_commands_->runSeeds(); });
}

void VariantCommands::follow(ComparedRuns* runs) {
  connect(runs, &ComparedRuns::aboutToBegin, this, [this] { parts_.runs->showOnly({}); });
  connect(runs, &ComparedRuns::refused, this, &VariantCommands::showEnabled);
  connect(runs, &ComparedRuns::ended, this, &VariantCommands::takeEnd);
}

void VariantCommands::takeEnd() {
  QList<RunSeries*> runs;
  for (const QueuedRun& queued : parts_.queue->runs())
    if (queued.run) runs.append(queued.run);
  if (!runs.isEmpty()) Q_EMIT compared(runs);
}

void VariantCommands::showEnabled() {
  const bool may_run = parts_.control->actions().contains(RunAction::run) && !parts_.queue->isActive();
  for (const Command all : {Command::runAllDialects, Command::runAllOptimizers}) actions_[all]->setEnabled(may_run);
}

void VariantCommands::showDialects() {
  if (!dialect_panel_)
    dialect_panel_ =
        new DialectPanel(parts_.document, dialects_, parts_.queue, actions_[Command::runAllDialects], window_);
  raiseWindow(dialect_panel_);
}

void VariantCommands::showProducts() {
  if (!product_panel_)
    product_panel_ = new IsoBatchPanel(
        parts_.document, products_, product_runs_, parts_.queue, parts_.control, parts_.library,
        [this] { return parts_.training->formHolds(); }, window_);
  raiseWindow(product_panel_);
}

}  // namespace accrue::ui
