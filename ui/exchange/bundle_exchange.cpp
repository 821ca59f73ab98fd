// SPDX-License-Identifier: GPL-3.0-or-later
#include "bundle_exchange.h"

#include <QDir>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLocale>
#include <QWidget>
#include <algorithm>
#include <ranges>
#include <utility>
#include <vector>

#include "accrue/run/export/bundle.h"
#include "accrue/run/fields/spec_io.h"
#include "document/spec_document.h"
#include "document/spec_files.h"
#include "exchange_dialogs.h"
#include "exchange_jobs.h"
#include "kit/actions.h"
#include "runs/run_library.h"
#include "runs/run_notebook.h"
#include "series/run_name.h"
#include "series/run_series.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

namespace {

const QString bundle_id = QStringLiteral("bundle");

/// Notes on these runs, by id; without the user's own notes, their names.
std::string notesText(const RunLibrary& library, const QStringList& folders, bool with_own) {
  QJsonObject notes;
  for (const QString& folder : folders) {
    const RunSeries* run = library.find(folder);
    if (!run) continue;
    RunNotes said = run->notes();
    if (!with_own) said = {.name = {}, .text = {}, .tags = {}, .called = said.called};
    if (said != RunNotes()) notes[run->id()] = RunNotebook::toJson(said);
  }
  return notes.isEmpty() ? std::string() : QJsonDocument(notes).toJson().toStdString();
}

QString countedRuns(std::int64_t count) {
  return count == 1 ? BundleExchange::tr("1 run") : BundleExchange::tr("%1 runs").arg(count);
}

}  // namespace

BundleExchange::BundleExchange(const BundleParts& parts, const Actions& actions)
    : QObject(parts.window), parts_(parts) {
  connect(actions[Command::exportBundle], &QAction::triggered, this, &BundleExchange::exportBundle);
}

void BundleExchange::say(const QString& text, bool failed) {
  parts_.messages->post({bundle_id, failed ? RunState::failed : RunState::finished, text, {}, {}});
}

void BundleExchange::exportBundle() {
  if (asking_) return;
  QList<BundleRow> rows;
  std::vector<NamedSpec> named;
  const QList<RunSeries*> chosen = parts_.chosen_runs();
  const RunTableModel& table = *parts_.library->table();
  for (int row = 0; row < table.rowCount(); ++row) {
    const RunSeries* run = table.run(row);
    if (run->isLive() || run->folder().isEmpty()) continue;  // its record still grows
    named.push_back({run->name(), run->spec() ? &*run->spec() : nullptr});
    rows.append({.folder = run->folder(), .name = {}, .chosen = chosen.contains(run)});
  }
  const QStringList names = distinctNames(named);
  for (qsizetype row = 0; row < rows.size(); ++row) rows[row].name = names[row];
  asking_ = true;
  parts_.jobs->run(
      tr("Looking for weights"),
      [rows](const ExchangeJobs::GoOn& goOn) mutable {
        for (BundleRow& row : rows)
          if (goOn(ExchangeJobs::unknown)) row.weight_bytes = bundled_weight_bytes(row.folder.toStdString());
        return rows;
      },
      [this](const QList<BundleRow>& weighed, bool cancelled) {
        if (!cancelled) askAndWrite(weighed);
        asking_ = false;
      });
}

void BundleExchange::askAndWrite(const QList<BundleRow>& rows) {
  const std::optional<BundleChoice> choice = parts_.dialogs->askBundle(parts_.window, rows);
  if (!choice) return;
  const QString file =
      parts_.dialogs->exportFile(parts_.window, QDir::home().filePath(QStringLiteral("runs.accrue-bundle")),
                                 tr("Bundle of runs (*.accrue-bundle)"));
  if (file.isEmpty()) return;
  if (QFileInfo(file).suffix() != QLatin1String("accrue-bundle"))
    return say(tr("%1 is no name of a bundle. End the name in .accrue-bundle.").arg(file), true);
  BundleRequest request{.with_weights = choice->weights};
  for (const QString& folder : choice->folders) request.runs.push_back(folder.toStdString());
  if (choice->spec) request.spec = write_spec(parts_.document->spec());
  request.notes = notesText(*parts_.library, choice->folders, choice->notes);
  parts_.jobs->run(
      tr("Writing %1").arg(QFileInfo(file).fileName()),
      [request = std::move(request), file](const ExchangeJobs::GoOn& goOn) {
        return write_bundle(request, file.toStdString(), goOn);
      },
      [this, file](const Result<BundleWritten>& written, bool cancelled) {
        if (written)
          say(tr("%1 was written: %2, %3")
                  .arg(file, countedRuns(written->runs), QLocale().formattedDataSize(written->file_bytes)),
              false);
        else if (!cancelled || written.error().code != ErrorCode::cancelled)
          say(tr("The bundle was not written. %1").arg(QString::fromStdString(written.error().text())), true);
      });
}

void BundleExchange::importBundle(const QString& file) {
  parts_.jobs->run(
      tr("Importing %1").arg(QFileInfo(file).fileName()),
      [file, runs_dir = parts_.library->runsDir()](const ExchangeJobs::GoOn& goOn) {
        return import_bundle(file.toStdString(), runs_dir.toStdString(), goOn);
      },
      [this, file](const Result<BundleContents>& bundle, bool cancelled) {
        if (bundle)
          showImported(file, *bundle);
        else if (!cancelled || bundle.error().code != ErrorCode::cancelled)
          say(tr("The bundle was not imported. %1").arg(QString::fromStdString(bundle.error().text())), true);
      });
}

void BundleExchange::showImported(const QString& file, const BundleContents& bundle) {
  takeNotes(bundle);
  const auto fresh = static_cast<int>(std::ranges::count(bundle.runs, false, &BundledRun::was_there));
  // The first of the bundle last: it becomes the focused run, and runs with incomparable losses are not drawn.
  for (const BundledRun& run : bundle.runs | std::views::reverse)
    parts_.library->open(QString::fromStdString(run.dir.string()));
  QStringList sentences;
  if (fresh > 0 || bundle.runs.empty()) sentences << tr("%1 imported").arg(countedRuns(fresh));
  if (const int there = static_cast<int>(bundle.runs.size()) - fresh; there > 0)
    sentences << (there == 1 ? tr("1 run was here already") : tr("%1 runs were here already").arg(there));
  if (bundle.ignores_layout) sentences << tr("its window layout is ignored");
  const auto use = [this, file, spec = QString::fromStdString(bundle.spec)] {
    parts_.files->openText(spec, QFileInfo(file).completeBaseName());
  };
  QStringList folders;
  for (const BundledRun& run : bundle.runs) folders << QString::fromStdString(run.dir.string());
  parts_.messages->post({.id = bundle_id,
                         .tone = RunState::finished,
                         .text = sentences.join(QStringLiteral("; ")),
                         .action = bundle.spec.empty() ? QString() : tr("Use its spec"),
                         .act = use,
                         .runs = folders});
}

/// Keeps the user's own note on an existing run.
void BundleExchange::takeNotes(const BundleContents& bundle) {
  const QJsonObject notes = QJsonDocument::fromJson(QByteArray::fromStdString(bundle.notes)).object();
  for (const BundledRun& run : bundle.runs)
    if (const auto noted = notes.find(QString::fromStdString(run.run_id)); noted != notes.end())
      parts_.notebook->takeOver(noted.key(), RunNotebook::fromJson(noted.value().toObject()));
}

}  // namespace accrue::ui
