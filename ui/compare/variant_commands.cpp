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
#include "seed_dialogs.h"
#include "setup/field_form.h"
#include "setup/setup_panel.h"

namespace accrue::ui {

VariantCommands::VariantCommands(const Actions& actions, const Parts& parts, QWidget* window)
    : QObject(window),
      actions_(actions),
      parts_(parts),
      window_(window),
      variants_({{Command::runAllDialects, [] { return inDialects; }},
                 {Command::runAllOptimizers, [] { return withOptimizers; }, updateNormPlot},
                 {Command::runSeeds, [this] { return underSeeds(parts_.dialogs->askSeeds(window_)); }}}),
      runs_(new ComparedRuns(parts.document, parts.preflight, parts.queue, parts.bar, this)),
      dialects_(new DialectPlans(parts.document, parts.preflight, compareDialects, this)),
      products_(new IsoPlans(parts.document, parts.preflight, planProducts, this)) {
  parts_.setup->form()->addTitleAction(QStringLiteral("accumulation"), actions_[Command::compareDialects]);
  parts_.runs->addBelow(new QueueList(parts_.queue, parts_.runs));
  new QueueCommands(actions, {parts.document, parts.preflight, parts.library, parts.queue, parts.training, parts.bar},
                    window);
  for (const VariantCommand& each : variants_)
    connect(actions_[each.command], &QAction::triggered, this, [this, each] {
      if (parts_.training->formHolds()) runs_->start({each.choose(), each.plot});
    });
  connect(actions_[Command::compareDialects], &QAction::triggered, this, &VariantCommands::showDialects);
  connect(actions_[Command::isoBatch], &QAction::triggered, this, &VariantCommands::showProducts);
  connect(runs_, &ComparedRuns::aboutToBegin, this, [this](const QString& plot) {
    parts_.runs->showOnly({});
    parts_.plots->showBesideLoss(plot);
  });
  connect(runs_, &ComparedRuns::planningChanged, this, &VariantCommands::showEnabled);
  connect(runs_, &ComparedRuns::ended, this, &VariantCommands::takeEnd);
  connect(parts_.control, &RunControl::stateChanged, this, &VariantCommands::showEnabled);
  connect(parts_.queue, &RunQueue::changed, this, &VariantCommands::showEnabled);
  connect(parts_.queue, &RunQueue::finished, this, &VariantCommands::showEnabled);
  showEnabled();
}

void VariantCommands::takeEnd() {
  QList<RunSeries*> runs;
  for (const QueuedRun& queued : parts_.queue->runs())
    if (queued.run) runs.append(queued.run);
  if (!runs.isEmpty()) Q_EMIT compared(runs);
}

void VariantCommands::showEnabled() {
  const bool may_run =
      parts_.control->actions().contains(RunAction::run) && !parts_.queue->isActive() && !runs_->isPlanning();
  for (const VariantCommand& each : variants_) actions_[each.command]->setEnabled(may_run);
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
        parts_.document, products_, runs_, parts_.queue, parts_.control, parts_.library,
        [this] { return parts_.training->formHolds(); }, window_);
  raiseWindow(product_panel_);
}

}  // namespace accrue::ui
