// SPDX-License-Identifier: GPL-3.0-or-later
#include "training_commands.h"

#include <QKeySequence>
#include <algorithm>

#include "accrue/run/fields/spec_fields.h"
#include "document/spec_document.h"
#include "kit/actions.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "run_control.h"
#include "run_dialogs.h"
#include "run_queue.h"
#include "runs/run_library.h"
#include "runs/runs_panel.h"
#include "setup/arithmetic_panel.h"
#include "setup/field_form.h"
#include "setup/setup_panel.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

TrainingCommands::TrainingCommands(const Actions& actions, const Parts& parts, QWidget* window)
    : QObject(window), actions_(actions), parts_(parts) {
  connectSetup();
  connectActions(window);
  connectRuns();
  connect(parts_.control, &RunControl::stateChanged, this, &TrainingCommands::showEnabled);
  connect(parts_.queue, &RunQueue::changed, this, &TrainingCommands::showEnabled);
  connect(parts_.queue, &RunQueue::finished, this, &TrainingCommands::showEnabled);
}

void TrainingCommands::connectSetup() {
  connect(parts_.document, &SpecDocument::changed, this, &TrainingCommands::showEditsWaiting);
  // A refusal was of the set-up as it stood.
  const auto withdraw_refusal = [this] { parts_.bar->withdraw(QStringLiteral("refused")); };
  connect(parts_.document, &SpecDocument::changed, this, withdraw_refusal);
  connect(parts_.setup->form(), &FieldForm::rejectedFieldsChanged, this, withdraw_refusal);
  connect(parts_.control, &RunControl::changed, this, [this] {
    parts_.setup->arithmetic()->setEditsNotRun(parts_.control->editsNotRun(), parts_.control->lastRanAnother());
  });
}

void TrainingCommands::connectActions(QWidget* window) {
  RunControl* control = parts_.control;
  const auto on = [this](Command command, auto act) { connect(actions_[command], &QAction::triggered, this, act); };
  on(Command::run, [this, control] {
    if (formHolds()) control->start();
  });
  on(Command::runPaused, [this, control] {
    if (formHolds()) control->startPaused();
  });
  on(Command::pause, [control] { control->togglePause(); });
  on(Command::stepPhase, [this] { step(&RunControl::stepPhase); });
  on(Command::stepMicro, [this] { step(&RunControl::stepMicro); });
  on(Command::stepUpdate, [control] { control->stepUpdate(); });
  on(Command::stop, [control] { control->stop(); });
  on(Command::stopUnsaved, [control] { control->stopUnsaved(); });
  on(Command::kill, [control] { control->kill(); });
  on(Command::checkpoint, [control] { control->checkpoint(); });
  on(Command::setSteps, [this, control, window] {
    if (!control->run()) return;
    if (const auto steps = parts_.dialogs->askSteps(window, std::max<std::int64_t>(control->run()->steps(), 1)))
      control->setSteps(*steps);
  });
  const auto on_focused = [this, on](Command command, auto go) {
    on(command, [this, go] {
      if (const RunSeries* run = parts_.runs->currentRun()) go(run->folder());
    });
  };
  on_focused(Command::resume, [control](const QString& folder) { control->resume(folder); });
  on_focused(Command::branch, [control](const QString& folder) { control->branch(folder); });
  on_focused(Command::attach, [control](const QString& folder) { control->attach(folder); });
}

void TrainingCommands::connectRuns() {
  RunControl* control = parts_.control;
  connect(parts_.runs, &RunsPanel::resumeRequested, control,
          [control](RunSeries* run) { control->resume(run->folder()); });
  connect(parts_.runs, &RunsPanel::branchRequested, control,
          [control](RunSeries* run) { control->branch(run->folder()); });
  connect(parts_.runs, &RunsPanel::attachRequested, control,
          [control](RunSeries* run) { control->attach(run->folder()); });
  connect(parts_.runs, &RunsPanel::shownRunsChanged, this, &TrainingCommands::showContinuations);
  connect(parts_.library, &RunLibrary::refreshed, this, &TrainingCommands::showContinuations);
  connect(parts_.library, &RunLibrary::loaded, this, &TrainingCommands::showContinuations);
}

/// If nothing is live a step begins a run, and the form has to hold.
void TrainingCommands::step(void (RunControl::*unit)()) {
  if (parts_.control->isLive() || formHolds()) (parts_.control->*unit)();
}

bool TrainingCommands::formHolds() {
  parts_.document->endTyping();
  FieldForm* form = parts_.setup->form();
  const QStringList rejected = form->rejectedFields();
  if (rejected.isEmpty()) return true;
  form->focusField(rejected.front());
  parts_.bar->post({QStringLiteral("refused"),
                    RunState::failed,
                    tr("The set-up cannot be run: %1 has no valid value")
                        .arg(fromView(find_field(rejected.front().toStdString())->label)),
                    {},
                    {}});
  return false;
}

void TrainingCommands::showEnabled() {
  const RunActions possible = parts_.control->actions();
  const auto enable = [&](Command command, bool on) { actions_[command]->setEnabled(on); };
  const bool may_run = possible.contains(RunAction::run);
  enable(Command::demo, may_run);
  for (const Command start : {Command::run, Command::runPaused}) enable(start, may_run && !parts_.queue->isActive());
  for (const Command step : {Command::stepPhase, Command::stepMicro})
    enable(step, possible.contains(RunAction::step) || may_run);
  enable(Command::stepUpdate, possible.contains(RunAction::step));
  const bool stopping = parts_.control->state() == RunState::stopping;
  enable(Command::stop, possible.contains(stopping ? RunAction::kill : RunAction::stop));
  enable(Command::kill, possible.contains(RunAction::kill));
  enable(Command::checkpoint, possible.contains(RunAction::checkpoint));
  enable(Command::stopUnsaved, possible.contains(RunAction::stopUnsaved));
  enable(Command::setSteps, possible.contains(RunAction::setSteps));
  actions_[Command::stop]->setIconText(stopping ? tr("Kill") : tr("Stop"));
  actions_[Command::stop]->setText(stopping ? tr("&Kill (second press)") : tr("&Stop"));
  showPause();
  showContinuations();
  showEditsWaiting();
  Q_EMIT editableChanged(possible.contains(RunAction::edit) || parts_.control->isLive());
}

void TrainingCommands::showPause() {
  const RunActions possible = parts_.control->actions();
  const bool paused = possible.contains(RunAction::proceed);
  QAction* pause = actions_[Command::pause];
  pause->setEnabled(paused || possible.contains(RunAction::pause));
  // The key that starts a run also continues it, as in debuggers.
  const QKeySequence own = pause->shortcut();
  pause->setShortcuts(paused ? QList{own, actions_[Command::run]->shortcut()} : QList{own});
  pause->setIconText(paused ? tr("Continue") : tr("Pause"));
  pause->setText(paused ? tr("&Continue") : tr("&Pause"));
  pause->setIcon(themedIcon(paused ? QStringLiteral("continue") : QStringLiteral("pause")));
}

void TrainingCommands::showEditsWaiting() {
  const auto edits = parts_.control->editsWaiting();
  parts_.setup->form()->setEditsWaiting(edits);
  const auto count = edits.size();
  QAction* run = actions_[Command::run];
  run->setIconText(count == 0 ? tr("Run") : tr("Run (%1)").arg(count));
  const QString sentence = count == 0   ? tr("Check the spec and train")
                           : count == 1 ? tr("1 edit waits for the next run")
                                        : tr("%1 edits wait for the next run").arg(count);
  run->setStatusTip(sentence);
  //: Tooltip of a command: what it does (its key)
  run->setToolTip(tr("%1 (%2)").arg(sentence, run->shortcut().toString(QKeySequence::NativeText)));
}

void TrainingCommands::showContinuations() {
  const RunSeries* run = parts_.runs->currentRun();
  const RunControl& control = *parts_.control;
  const bool idle = control.isIdle();
  parts_.runs->setBusy(!idle);
  // The library may not know yet that the run which ended here is over.
  const bool elsewhere = run && run != control.run() && parts_.library->liveElsewhere().contains(run->folder());
  actions_[Command::attach]->setEnabled(idle && elsewhere);
  const bool resumable = idle && run && !run->isLive() && !parts_.library->isImported(run->folder());
  actions_[Command::resume]->setEnabled(resumable && !elsewhere && run->outcome().outcome != QLatin1String("finished"));
  actions_[Command::branch]->setEnabled(resumable);
}

}  // namespace accrue::ui
