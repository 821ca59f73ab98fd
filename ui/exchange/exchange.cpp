// SPDX-License-Identifier: GPL-3.0-or-later
#include "exchange.h"

#include <QDir>
#include <QFileInfo>
#include <QWidget>

#include "accrue/run/export/chrome_trace.h"
#include "accrue/run/export/tensorboard_export.h"
#include "accrue/run/logs/log_import.h"
#include "accrue/run/logs/log_reader.h"
#include "accrue/run/weights/huggingface_export.h"
#include "code_export_sheet.h"
#include "document/spec_document.h"
#include "document/spec_files.h"
#include "exchange_jobs.h"
#include "kit/actions.h"
#include "kit/file_dialogs.h"
#include "kit/raise.h"
#include "runs/run_library.h"
#include "runs/runs_panel.h"
#include "series/run_series.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

namespace {

const QString message_id = QStringLiteral("exchange");

std::filesystem::path pathOf(const QString& text) {
  return text.toStdString();
}

/// Result of an import.
struct Imported {
  QStringList folders;
  QString problem;
  QStringList notes;
  QStringList steps;   ///< columns or keys, if no step column is known
  QStringList losses;  ///< scalars of a run, if no loss is known
  QString run;         ///< that run, of several
};

QStringList listOf(const std::vector<std::string>& names) {
  QStringList list;
  for (const std::string& name : names)
    if (!name.empty()) list.append(QString::fromStdString(name));
  return list;
}

Imported importFrom(const QString& from, const QString& runs_dir, const QString& step, const QStringList& losses,
                    const std::function<bool()>& go_on) {
  Imported imported;
  GivenTags tags;
  for (const QString& loss : losses) tags.loss.push_back(loss.toStdString());
  const auto refuse = [&](const Error& error) {
    return imported.problem = QString::fromStdString(error.text()), imported;
  };
  std::vector<std::string> steps;
  auto logs = read_logs(pathOf(from), {.step = step.toStdString(), .go_on = go_on, .step_names = &steps});
  imported.steps = listOf(steps);
  if (!logs) return refuse(logs.error());
  for (const RunLog& log : *logs) {
    const auto choice = choose_tags(log, tags);
    if (choice) continue;
    // An error with a place is about a field; otherwise another tag may be the loss.
    for (const auto& [tag, values] : log.scalars)
      if (choice.error().where.empty() && !tag.ends_with(samples_twin))
        imported.losses.append(QString::fromStdString(tag));
    if (logs->size() > 1) imported.run = QString::fromStdString(log.name.empty() ? log.id : log.name);
    return refuse(choice.error());
  }
  const auto done = import_logs(std::move(*logs), pathOf(from), {.runs_dir = pathOf(runs_dir)}, tags, go_on);
  if (!done) return refuse(done.error());
  for (const ImportedRun& each : *done) {
    imported.folders.append(QString::fromStdString(each.dir.string()));
    for (const auto* all : {&each.choice.notes, &each.problems})
      for (const std::string& note : *all)
        if (const QString text = QString::fromStdString(note); !imported.notes.contains(text))
          imported.notes.append(text);
  }
  return imported;
}

}  // namespace

Exchange::Exchange(const ExchangeParts& parts, const Actions& actions) : QObject(parts.window), parts_(parts) {
  connect(actions[Command::exportCode], &QAction::triggered, this, &Exchange::showCode);
  connect(actions[Command::exportTrace], &QAction::triggered, this, &Exchange::exportTrace);
  connect(actions[Command::exportScalars], &QAction::triggered, this, &Exchange::exportScalars);
  connect(actions[Command::exportWeights], &QAction::triggered, this, &Exchange::exportWeights);
  connect(actions[Command::importLog], &QAction::triggered, this, &Exchange::importLog);
  connect(parts_.document, &SpecDocument::changed, this, [this] { form_is_newer_ = true; });
  const auto enable = [this, &actions] { showEnabled(actions); };
  connect(parts_.runs, &RunsPanel::shownRunsChanged, this, enable);
  connect(parts_.runs, &RunsPanel::shownRunsChanged, this, &Exchange::noteFocus);
  connect(parts_.library, &RunLibrary::refreshed, this, enable);  // a run may have ended
  enable();
}

void Exchange::showEnabled(const Actions& actions) {
  const RunSeries* run = parts_.runs->currentRun();
  for (const Command command : {Command::exportTrace, Command::exportScalars})
    actions[command]->setEnabled(run != nullptr);
  const QString lacking = !run ? tr("Select a run whose weights are to be exported")
                          : QFileInfo::exists(QDir(run->folder()).filePath(QStringLiteral("final/model.safetensors")))
                              ? QString()
                              : tr("%1 has no final weights: they are written when a run finishes").arg(run->name());
  actions.enableUnless(lacking, Command::exportWeights);
}

void Exchange::noteFocus() {
  RunSeries* const run = parts_.runs->currentRun();
  if (run == focused_) return;
  focused_ = run;
  form_is_newer_ = false;
  if (sheet_) sheet_->offer(run, sheet_->isOfRun());
}

void Exchange::showCode() {
  if (!sheet_) sheet_ = new CodeExportSheet(parts_.document, parts_.preflight, parts_.dialogs, parts_.window);
  // The user means whatever was used last: the form or the run.
  if (!sheet_->isVisible()) sheet_->offer(parts_.runs->currentRun(), !form_is_newer_);
  raiseWindow(sheet_);
}

void Exchange::say(const QString& text, bool failed) {
  parts_.messages->post({message_id, failed ? RunState::failed : RunState::finished, text, {}, {}});
}

void Exchange::exportTrace() {
  const RunSeries* run = parts_.runs->currentRun();
  if (!run) return say(tr("Select a run whose trace is to be exported."), true);
  const QString file = parts_.dialogs->exportFile(
      parts_.window, QDir(run->folder()).filePath(QStringLiteral("trace.json")), tr("Chrome trace (*.json)"));
  if (file.isEmpty()) return;
  parts_.jobs->run(
      tr("Exporting the trace"),
      [folder = run->folder().toStdString(), file](const ExchangeJobs::GoOn& go_on) {
        return write_chrome_trace(folder, pathOf(file), go_on);
      },
      [this, file](const Result<TraceCounts>& counts, bool cancelled) {
        if (counts)
          say(tr("Saved %1: open it in Perfetto (ui.perfetto.dev) or chrome://tracing.")
                  .arg(QDir::toNativeSeparators(file)),
              false);
        else if (!cancelled || counts.error().code != ErrorCode::cancelled)
          say(tr("The trace was not exported. %1").arg(QString::fromStdString(counts.error().text())), true);
      });
}

void Exchange::exportScalars() {
  const RunSeries* run = parts_.runs->currentRun();
  if (!run) return say(tr("Select a run whose scalars are to be exported."), true);
  const QString folder =
      parts_.dialogs->chooseFolder(parts_.window, tr("Folder for TensorBoard's event files"), run->folder());
  if (folder.isEmpty()) return;
  parts_.jobs->run(
      tr("Exporting the scalars of %1").arg(run->name()),
      [from = run->folder().toStdString(), folder](const ExchangeJobs::GoOn& go_on) {
        return export_tensorboard(from, pathOf(folder), [&] { return go_on(ExchangeJobs::unknown); });
      },
      [this](const Result<ScalarsWritten>& written, bool cancelled) {
        if (written)
          say(tr("Saved %1.").arg(QString::fromStdString(written->file.string())), false);
        else if (!cancelled || written.error().code != ErrorCode::cancelled)
          say(tr("The scalars were not exported. %1").arg(QString::fromStdString(written.error().text())), true);
      });
}

void Exchange::exportWeights() {
  const RunSeries* run = parts_.runs->currentRun();
  if (!run) return say(tr("Select a run whose weights are to be exported."), true);
  const QString folder =
      parts_.dialogs->chooseFolder(parts_.window, tr("New or empty folder for the weights"), QDir::homePath());
  if (folder.isEmpty()) return;
  parts_.jobs->run(
      tr("Exporting the weights of %1").arg(run->name()),
      [from = run->folder().toStdString(), folder](const ExchangeJobs::GoOn& go_on) {
        return export_huggingface(from, pathOf(folder), [&] { return go_on(ExchangeJobs::unknown); });
      },
      [this, folder](const Result<HuggingFaceExport>& written, bool cancelled) {
        if (written)
          say(tr("Saved %1: %2.").arg(QDir::toNativeSeparators(folder), QString::fromStdString(written->tokenizer)),
              false);
        else if (!cancelled || written.error().code != ErrorCode::cancelled)
          say(tr("The weights were not exported. %1").arg(QString::fromStdString(written.error().text())), true);
      });
}

void Exchange::importLog() {
  const QString folder = parts_.dialogs->chooseFolder(parts_.window, tr("Import a log folder"), QDir::homePath());
  if (!folder.isEmpty()) importCurves(folder);
}

void Exchange::readCurves(const QString& from, const QString& step, const QStringList& losses) {
  parts_.jobs->run(
      tr("Importing %1").arg(QDir::toNativeSeparators(from)),
      [from, runs_dir = parts_.library->runsDir(), step, losses](const ExchangeJobs::GoOn& go_on) {
        return importFrom(from, runs_dir, step, losses, [&] { return go_on(ExchangeJobs::unknown); });
      },
      [this, from, step, losses](const Imported& imported, bool cancelled) {
        // Runs that were imported before the cancellation are like others.
        for (const QString& folder : imported.folders) parts_.library->open(folder);
        if (cancelled) return;
        const auto ask = [this](const QString& question, const QStringList& names) {
          return parts_.dialogs->chooseItem(parts_.window, tr("Import"), question, names);
        };
        if (!imported.steps.isEmpty()) {
          const QString name = ask(tr("Which of the log's columns is the step?"), imported.steps);
          return name.isEmpty() ? void() : readCurves(from, name, losses);
        }
        if (!imported.losses.isEmpty()) {
          const QString name = ask(imported.run.isEmpty() ? tr("Which of the log's scalars is the loss?")
                                                          : tr("Which scalar of %1 is the loss?").arg(imported.run),
                                   imported.losses);
          return name.isEmpty() ? void() : readCurves(from, step, losses + QStringList{name});
        }
        if (!imported.problem.isEmpty()) return say(tr("Nothing was imported. %1").arg(imported.problem), true);
        if (!imported.notes.isEmpty())
          parts_.messages->post(
              {.id = message_id,
               .tone = RunState::finished,
               .text = tr("Imported. Not everything is known: %1.").arg(imported.notes.join(QStringLiteral("; "))),
               .action = {},
               .act = {},
               .runs = imported.folders});
      });
}

}  // namespace accrue::ui
