// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_messages.h"

#include <QFileInfo>
#include <algorithm>

#include "document/findings_model.h"
#include "kit/number_text.h"
#include "points/chunk_file.h"
#include "run_control.h"
#include "runs/run_library.h"
#include "series/run_text.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

namespace {

QString sentences(const QString& first, const QString& second) {
  if (second.isEmpty()) return first;
  const bool ends = first.endsWith(QLatin1Char('.')) || first.endsWith(QLatin1Char('?'));
  return (ends ? QStringLiteral("%1 %2") : QStringLiteral("%1. %2")).arg(first, second);
}

const RunProblem* lastFatal(const RunSeries& run) {
  const auto& problems = run.problems();
  const auto fatal =
      std::find_if(problems.rbegin(), problems.rend(), [](const RunProblem& problem) { return problem.fatal; });
  return fatal == problems.rend() ? nullptr : &*fatal;
}

}  // namespace

RunMessages::RunMessages(RunControl* control, RunLibrary* library, MessageBar* bar, QObject* parent)
    : QObject(parent), control_(control), library_(library), bar_(bar) {
  connect(control_, &RunControl::refused, this, &RunMessages::showRefused);
  connect(control_, &RunControl::warned, this, &RunMessages::showWarned);
  connect(control_, &RunControl::commandFailed, this, &RunMessages::showFailed);
  connect(control_, &RunControl::stateChanged, this, &RunMessages::showState);
  connect(control_, &RunControl::ended, this, &RunMessages::showEnd);
  connect(control_, &RunControl::runBegun, this, [this](RunSeries* run) {
    shown_problems_ = run->problemCount();
    for (const char* id : {"refused", "command", "end", "degraded", "interrupted", "branched", "open", "file", "queue",
                           "bundle", "exchange", "export"})
      bar_->withdraw(QLatin1String(id));
  });
  connect(library_, &RunLibrary::refreshed, this, &RunMessages::offerInterrupted);
  connect(library_->table(), &QAbstractItemModel::rowsRemoved, this, [this] {
    withdrawStale();
    bar_->withdrawWithout([this](const QString& folder) { return library_->find(folder) != nullptr; });
  });
  connect(library_, &RunLibrary::liveFound, this, [this](RunSeries* run) {
    if (!control_->isLive()) offerAttach(run->folder());
  });
  connect(&ChunkFile::common(), &ChunkFile::failed, this, [this](const QString& why) {
    bar_->post({QStringLiteral("memory"),
                RunState::degraded,
                //: %1 why they could not be written to a file
                tr("The points of long runs stay in memory: %1").arg(why),
                {},
                {}});
  });
  connect(library_, &RunLibrary::openFailed, this, [this](const QString& folder, const QString& message) {
    bar_->post(
        {QStringLiteral("open"), RunState::failed, tr("%1 could not be opened: %2").arg(folder, message), {}, {}});
  });
}

void RunMessages::showRefused(const std::vector<Finding>& findings) {
  const auto is_error = [](const Finding& finding) { return finding.severity == Severity::error; };
  const auto errors = std::ranges::count_if(findings, is_error);
  const auto first = std::ranges::find_if(findings, is_error);
  const QString which = first == findings.end() ? QString() : findingSentence(*first);
  bar_->post({QStringLiteral("refused"), RunState::failed,
              errors == 1 ? tr("One error must be fixed before this can run: %1").arg(which)
                          : tr("%n errors must be fixed before this can run. The first is %1", nullptr,
                               static_cast<int>(errors))
                                .arg(which),
              tr("Show the first"), [this] { Q_EMIT errorFieldRequested(); }});
  Q_EMIT errorFieldRequested();
}

void RunMessages::showWarned(const std::vector<Finding>& findings) {
  QStringList all;
  for (const Finding& finding : findings)
    all += QStringLiteral("%1 %2").arg(QString::fromStdString(finding.key), QString::fromStdString(finding.message));
  bar_->post({QStringLiteral("branched"), RunState::degraded, all.join(QStringLiteral("; ")), {}, {}});
}

void RunMessages::showFailed(const Error& error) {
  bar_->post({QStringLiteral("command"), RunState::failed, QString::fromStdString(error.text()), {}, {}});
}

void RunMessages::showState(RunState state) {
  const RunSeries* run = control_->run();
  if (state == RunState::degraded && run && !run->problems().empty()) {
    const RunProblem& problem = run->problems().back();
    bar_->post({QStringLiteral("degraded"), RunState::degraded, sentences(problem.message, problem.whatToDo),
                tr("Show log"), [this] { Q_EMIT logRequested(); }});
  } else if (state == RunState::paused && run && run->problemCount() > shown_problems_ &&
             run->problems().back().className == QLatin1String("numerics")) {
    shown_problems_ = run->problemCount();
    const RunProblem& problem = run->problems().back();
    bar_->post({QStringLiteral("degraded"), RunState::degraded, sentences(problem.message, problem.whatToDo),
                tr("Continue"), [this] { control_->togglePause(); }});
  } else if (state == RunState::running) {
    bar_->withdraw(QStringLiteral("degraded"));
  }
}

void RunMessages::showEnd(RunSeries* run) {
  bar_->withdraw(QStringLiteral("degraded"));
  if (run->state() != RunState::failed) return;
  const RunProblem* problem = lastFatal(*run);
  const QString what = problem ? sentences(problem->message, problem->whatToDo) : stateSentence(*run, RunState::failed);
  library_->refresh();
  offerResume(QStringLiteral("end"), what, run->folder());
}

void RunMessages::offerResume(const QString& id, const QString& text, const QString& folder) {
  // Removed while the run trained, or never here: there is nothing to continue from.
  if (!QFileInfo::exists(folder) || library_->isImported(folder)) {
    bar_->post({.id = id, .tone = RunState::failed, .text = text, .action = {}, .act = {}, .runs = {folder}});
    return;
  }
  const std::int64_t update = library_->resumeUpdate(folder);
  const QString action =
      update > 0 ? tr("Resume from update %1").arg(groupedNumber(update)) : tr("Run again from the start");
  bar_->post({.id = id,
              .tone = RunState::failed,
              .text = text,
              .action = action,
              .act = [this, folder] { control_->resume(folder); },
              .runs = {folder}});
}

/// An offer disappears with its cause: the run has ended, or no longer exists.
void RunMessages::withdrawStale() {
  if (offered_folder_.isEmpty()) return;
  const bool stands = library_->find(offered_folder_) && (library_->liveElsewhere().contains(offered_folder_) ||
                                                          library_->interrupted().contains(offered_folder_));
  if (stands) return;
  bar_->withdraw(QStringLiteral("interrupted"));
  offered_folder_.clear();
}

void RunMessages::offerInterrupted() {
  withdrawStale();
  if (bar_->currentId() == QLatin1String("end") && control_->run())
    offerResume(QStringLiteral("end"), bar_->text(), control_->run()->folder());
  if (offered_ || control_->isLive()) return;
  offered_ = true;
  if (!library_->liveElsewhere().isEmpty()) {
    offerAttach(library_->liveElsewhere().first());
    return;
  }
  if (library_->interrupted().isEmpty()) return;
  const QString folder = library_->interrupted().first();
  offered_folder_ = folder;
  const RunSeries* run = library_->find(folder);
  const std::int64_t update = run ? run->last().update : 0;
  const QString text = tr("%1 was interrupted after update %2").arg(run ? run->name() : folder, groupedNumber(update));
  const std::int64_t checkpoint = library_->resumeUpdate(folder);
  bar_->post(
      {QStringLiteral("interrupted"), RunState::degraded, text,
       checkpoint > 0 ? tr("Resume from update %1").arg(groupedNumber(checkpoint)) : tr("Run again from the start"),
       [this, folder] { control_->resume(folder); }});
}

void RunMessages::offerAttach(const QString& folder) {
  offered_folder_ = folder;
  const RunSeries* run = library_->find(folder);
  bar_->post({QStringLiteral("interrupted"), RunState::running,
              tr("%1 is still training").arg(run ? run->name() : folder), tr("Attach"),
              [this, folder] { control_->attach(folder); }});
}

}  // namespace accrue::ui
