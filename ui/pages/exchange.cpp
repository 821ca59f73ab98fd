// SPDX-License-Identifier: GPL-3.0-or-later
#include "exchange.h"

#include <QDir>
#include <QFileInfo>
#include <QWidget>

#include "accrue/run/chrome_trace.h"
#include "accrue/run/tensorboard_run.h"
#include "code_export_sheet.h"
#include "dialogs.h"
#include "models/run_library.h"
#include "models/run_series.h"
#include "widgets/message_bar.h"
#include "window_actions.h"

namespace accrue::ui {

namespace {

const QString message_id = QStringLiteral("exchange");

/// Of the message that shows one job: others keep theirs.
QString progressId(const std::shared_ptr<std::atomic_bool>& job) {
  return QStringLiteral("%1.%2").arg(message_id).arg(reinterpret_cast<quintptr>(job.get()));
}

std::filesystem::path pathOf(const QString& text) {
  return text.toStdString();
}

/// What became of an import.
struct Imported {
  QString folder;
  QString problem;
  QStringList notes;
  QStringList tags;  ///< of a log without a tag that is known for a loss
};

/// Where a log's run goes: two imports of one log are two runs.
QString targetOf(const QString& logs, const QString& runs_dir) {
  const QString stem = QStringLiteral("imported-%1").arg(QFileInfo(QDir::cleanPath(logs)).fileName());
  QString target = QDir(runs_dir).filePath(stem);
  for (int number = 2; QFileInfo::exists(target); ++number)
    target = QDir(runs_dir).filePath(QStringLiteral("%1-%2").arg(stem).arg(number));
  return target;
}

Imported importFolder(const QString& logs, const QString& runs_dir, const QString& loss,
                      const std::function<bool()>& go_on) {
  Imported imported;
  const auto log = read_tensorboard(pathOf(logs), go_on);
  if (!log) {
    imported.problem = QString::fromStdString(log.error().text());
    return imported;
  }
  const ImportTags tags{.loss = loss.toStdString()};
  if (const auto choice = choose_tags(*log, tags); !choice) {
    imported.problem = QString::fromStdString(choice.error().text());
    for (const auto& [tag, values] : log->scalars) imported.tags.append(QString::fromStdString(tag));
    return imported;
  }
  const QString folder = targetOf(logs, runs_dir);
  const auto done = import_tensorboard(*log, pathOf(logs), pathOf(folder), tags);
  if (!done) {
    imported.problem = QString::fromStdString(done.error().text());
    return imported;
  }
  imported.folder = folder;
  for (const std::string& note : done->notes) imported.notes.append(QString::fromStdString(note));
  for (const std::string& problem : log->problems) imported.notes.append(QString::fromStdString(problem));
  return imported;
}

}  // namespace

Exchange::Exchange(const ExchangeParts& parts, const WindowActions& actions) : QObject(parts.window), parts_(parts) {
  for (QAction* action : {actions.exportTrace, actions.exportScalars}) action->setEnabled(false);  // without a run
  connect(actions.exportCode, &QAction::triggered, this, &Exchange::showCode);
  connect(actions.exportTrace, &QAction::triggered, this, &Exchange::exportTrace);
  connect(actions.exportScalars, &QAction::triggered, this, &Exchange::exportScalars);
  connect(actions.importLog, &QAction::triggered, this, &Exchange::importLog);
}

Exchange::~Exchange() {
  for (const GivenUp& job : under_way_) job->store(true);
}

void Exchange::showCode() {
  if (!sheet_) sheet_ = new CodeExportSheet(parts_.document, parts_.preflight, parts_.dialogs, parts_.window);
  sheet_->show();
  sheet_->raise();
  sheet_->activateWindow();
}

void Exchange::say(const QString& text, bool failed) {
  parts_.messages->post({message_id, failed ? RunState::failed : RunState::finished, text, {}, {}});
}

Exchange::GivenUp Exchange::begin() {
  under_way_.append(std::make_shared<std::atomic_bool>(false));
  return under_way_.last();
}

void Exchange::showProgress(const GivenUp& given_up, const QString& text) {
  if (given_up->load()) return;
  parts_.messages->post(
      {progressId(given_up), RunState::running, text, tr("Cancel"), [given_up] { given_up->store(true); }});
}

bool Exchange::end(const GivenUp& given_up) {
  under_way_.removeOne(given_up);
  parts_.messages->withdraw(progressId(given_up));
  return given_up->load();
}

void Exchange::exportTrace() {
  const RunSeries* run = parts_.focused_run();
  if (!run) return say(tr("Select a run whose trace is to be exported."), true);
  const QString file = parts_.dialogs->exportFile(
      parts_.window, QDir(run->folder()).filePath(QStringLiteral("trace.json")), tr("Chrome trace (*.json)"));
  if (file.isEmpty()) return;
  const GivenUp given_up = begin();
  const auto show = [this, given_up](int percent) {
    showProgress(given_up, tr("Exporting the trace: %1 %").arg(percent));
  };
  show(0);
  const std::string folder = run->folder().toStdString();
  jobs_.run(
      [this, folder, file, show, given_up, last = 0]() mutable {
        return write_chrome_trace(folder, pathOf(file), [&](double done) {
          if (const int percent = static_cast<int>(100.0 * done); percent != last)
            QMetaObject::invokeMethod(
                this, [show, percent] { show(percent); }, Qt::QueuedConnection),
                last = percent;
          return !given_up->load();
        });
      },
      [this, file, given_up](const Result<TraceCounts>& counts) {
        const bool cancelled = end(given_up);
        if (counts)
          say(tr("Saved %1: open it in Perfetto (ui.perfetto.dev) or chrome://tracing.")
                  .arg(QDir::toNativeSeparators(file)),
              false);
        else if (!cancelled || counts.error().code != ErrorCode::cancelled)
          say(tr("The trace was not exported. %1").arg(QString::fromStdString(counts.error().text())), true);
      });
}

void Exchange::exportScalars() {
  const RunSeries* run = parts_.focused_run();
  if (!run) return say(tr("Select a run whose scalars are to be exported."), true);
  const QString folder =
      parts_.dialogs->chooseFolder(parts_.window, tr("Folder for TensorBoard's event files"), run->folder());
  if (folder.isEmpty()) return;
  const GivenUp given_up = begin();
  showProgress(given_up, tr("Exporting the scalars of %1 \u2026").arg(run->name()));
  jobs_.run([from = run->folder().toStdString(), folder,
             given_up] { return export_tensorboard(from, pathOf(folder), [&] { return !given_up->load(); }); },
            [this, given_up](const Result<ScalarsWritten>& written) {
              const bool cancelled = end(given_up);
              if (written)
                say(tr("Saved %1.").arg(QString::fromStdString(written->file.string())), false);
              else if (!cancelled || written.error().code != ErrorCode::cancelled)
                say(tr("The scalars were not exported. %1").arg(QString::fromStdString(written.error().text())), true);
            });
}

void Exchange::importLog() {
  const QString folder =
      parts_.dialogs->chooseFolder(parts_.window, tr("Import a TensorBoard log folder"), QDir::homePath());
  if (!folder.isEmpty()) readLog(folder, {});
}

void Exchange::readLog(const QString& folder, const QString& loss) {
  const GivenUp given_up = begin();
  showProgress(given_up, tr("Importing %1 \u2026").arg(QDir::toNativeSeparators(folder)));
  jobs_.run([folder, runs_dir = parts_.library->runsDir(), loss,
             given_up] { return importFolder(folder, runs_dir, loss, [&] { return !given_up->load(); }); },
            [this, folder, given_up](const Imported& imported) {
              const bool cancelled = end(given_up);
              // What was imported before the cancel reached it is a run like others.
              if (cancelled && imported.folder.isEmpty()) return;
              if (!imported.tags.isEmpty()) {
                const QString tag = parts_.dialogs->chooseItem(
                    parts_.window, tr("Import"), tr("Which of the log's scalars is the loss?"), imported.tags);
                if (!tag.isEmpty()) readLog(folder, tag);
                return;
              }
              if (!imported.problem.isEmpty())
                return say(tr("The log was not imported. %1").arg(imported.problem), true);
              if (!imported.notes.isEmpty())
                say(tr("Imported. Not everything is known: %1.").arg(imported.notes.join(QStringLiteral("; "))), false);
              parts_.library->open(imported.folder);
            });
}

}  // namespace accrue::ui
