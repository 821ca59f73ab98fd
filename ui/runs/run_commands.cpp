// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_commands.h"

#include <QKeyEvent>
#include <QKeySequence>
#include <algorithm>

#include "kit/actions.h"
#include "kit/raise.h"
#include "run_library.h"
#include "run_notebook.h"
#include "run_notes_sheet.h"
#include "run_trash.h"
#include "runs_panel.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

namespace {

constexpr auto moved_id = "trash";
constexpr auto failed_id = "trash-failed";

}  // namespace

RunCommands::RunCommands(const Actions& actions, RunsPanel* runs, RunLibrary* library, MessageBar* bar, QWidget* window)
    : QObject(window),
      actions_(actions),
      runs_(runs),
      library_(library),
      bar_(bar),
      window_(window),
      trash_(new RunTrash(library, this)) {
  runs_->setCommands({actions[Command::renameRun], actions[Command::runNotes], actions[Command::starRun],
                      actions[Command::baseline], actions[Command::deleteRun]});
  connect(actions[Command::renameRun], &QAction::triggered, runs_, &RunsPanel::editName);
  connect(actions[Command::runNotes], &QAction::triggered, this, &RunCommands::showNotes);
  connect(actions[Command::starRun], &QAction::triggered, this, &RunCommands::toggleStars);
  connect(actions[Command::baseline], &QAction::triggered, this, &RunCommands::toggleBaseline);
  connect(actions[Command::deleteRun], &QAction::triggered, this, [this] { trash_->remove(chosen()); });
  connect(trash_, &RunTrash::moved, this, &RunCommands::showMoved);
  connect(trash_, &RunTrash::restored, this, [this] {
    bar_->withdraw(QLatin1String(moved_id));
    bar_->withdraw(QLatin1String(failed_id));
  });
  const auto fail = [this](const QString& why) {
    bar_->post({QLatin1String(failed_id), RunState::failed, why, {}, {}});
  };
  connect(trash_, &RunTrash::failed, this, fail);
  connect(runs_->notebook(), &RunNotebook::failed, this, fail);
  connect(runs_, &RunsPanel::shownRunsChanged, this, &RunCommands::showEnabled);
  runs_->installEventFilter(this);
  showEnabled();
}

bool RunCommands::eventFilter(QObject* object, QEvent* event) {
  const bool is_key = event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress;
  if (!is_key || !trash_->canUndo() || !static_cast<QKeyEvent*>(event)->matches(QKeySequence::Undo))
    return QObject::eventFilter(object, event);
  if (event->type() == QEvent::KeyPress) trash_->undo();
  event->accept();
  return true;
}

QList<RunSeries*> RunCommands::chosen() const {
  QList<RunSeries*> runs = runs_->selectedRuns();
  if (runs.isEmpty() && runs_->addressedRun()) runs.append(runs_->addressedRun());
  return runs;
}

void RunCommands::showEnabled() {
  const bool any = runs_->currentRun() != nullptr;
  for (QAction* action : {actions_[Command::renameRun], actions_[Command::runNotes], actions_[Command::starRun],
                          actions_[Command::deleteRun], actions_[Command::baseline]})
    action->setEnabled(any);
}

void RunCommands::showNotes() {
  if (!notes_) notes_ = new RunNotesSheet(runs_->notebook(), window_);
  notes_->setRun(runs_->addressedRun());
  raiseWindow(notes_);
}

/// All get the star unless all have it.
void RunCommands::toggleStars() {
  const QList<RunSeries*> runs = chosen();
  const bool all = std::ranges::all_of(runs, [](const RunSeries* run) { return run->notes().starred; });
  for (RunSeries* run : runs)
    if (run->notes().starred == all) runs_->notebook()->toggleStar(run);
}

void RunCommands::toggleBaseline() {
  RunSeries* run = runs_->addressedRun();
  library_->table()->setBaseline(run == library_->table()->baseline() ? nullptr : run);
}

void RunCommands::showMoved(const QStringList& names) {
  bar_->withdraw(QLatin1String(failed_id));
  const QString text = names.size() == 1
                           ? tr("%1 was moved to the trash").arg(names.first())
                           : tr("%n runs were moved to the trash", nullptr, static_cast<int>(names.size()));
  bar_->post({QLatin1String(moved_id), RunState::idle, text, tr("Undo"), [this] { trash_->undo(); }});
}

}  // namespace accrue::ui
