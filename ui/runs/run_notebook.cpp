// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_notebook.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLockFile>
#include <QSaveFile>
#include <chrono>
#include <optional>
#include <utility>

#include "run_table_model.h"

namespace accrue::ui {

namespace {

/// The "runs" of a file; nullopt if it exists and cannot be read.
std::optional<QJsonObject> readRuns(const QString& path) {
  QFile file(path);
  if (!file.exists()) return QJsonObject();
  if (!file.open(QIODevice::ReadOnly)) return std::nullopt;
  QJsonParseError problem;
  const QJsonDocument document = QJsonDocument::fromJson(file.readAll(), &problem);
  if (problem.error != QJsonParseError::NoError) return std::nullopt;
  return document.object().value(QLatin1String("runs")).toObject();
}

QString unreadable(const QString& path) {
  return RunNotebook::tr("The notes on runs in %1 cannot be read, so this note is not kept. Remove or fix the file.")
      .arg(path);
}

/// Writes into the current file, which another studio may have changed. Empty on success.
QString writeChanges(const QString& path, const QHash<QString, RunNotes>& changed) {
  QDir().mkpath(QFileInfo(path).absolutePath());
  QLockFile lock(path + QStringLiteral(".lock"));
  if (!lock.tryLock(std::chrono::seconds(5)))
    return RunNotebook::tr("The notes on runs could not be written to %1: another program holds the file").arg(path);
  std::optional<QJsonObject> runs = readRuns(path);
  if (!runs) return unreadable(path);
  for (auto run = changed.begin(); run != changed.end(); ++run) {
    if (*run == RunNotes())
      runs->remove(run.key());
    else
      runs->insert(run.key(), RunNotebook::toJson(*run));
  }
  const QByteArray text =
      QJsonDocument(QJsonObject{{QStringLiteral("accrue_notes"), 1}, {QStringLiteral("runs"), *runs}}).toJson();
  QSaveFile file(path);
  if (file.open(QIODevice::WriteOnly) && file.write(text) == text.size() && file.commit()) return {};
  return RunNotebook::tr("The notes on runs could not be written to %1: %2").arg(path, file.errorString());
}

}  // namespace

RunNotebook::RunNotebook(RunTableModel* table, QString file, QObject* parent)
    : QObject(parent), file_(std::move(file)) {
  delay_.setSingleShot(true);
  delay_.setInterval(300);
  connect(&delay_, &QTimer::timeout, this, &RunNotebook::write);
  read();
  connect(table, &QAbstractItemModel::rowsInserted, this, [this, table](const QModelIndex&, int first, int last) {
    for (int row = first; row <= last; ++row) table->run(row)->setNotes(notes_.value(table->run(row)->id()));
  });
  connect(table, &RunTableModel::called, this, [this](const RunSeries* run) {
    if (readable_) keep(run->id(), run->notes());
  });
}

RunNotebook::~RunNotebook() {
  if (readable_ && delay_.isActive()) writeChanges(file_, changed_);
}

void RunNotebook::read() {
  const std::optional<QJsonObject> read = readRuns(file_);
  readable_ = read.has_value();
  const QJsonObject runs = read.value_or(QJsonObject());
  for (auto run = runs.begin(); run != runs.end(); ++run) notes_.insert(run.key(), fromJson(run.value().toObject()));
}

QJsonObject RunNotebook::toJson(const RunNotes& notes) {
  return {{QStringLiteral("name"), notes.name},
          {QStringLiteral("called"), notes.called},
          {QStringLiteral("notes"), notes.text},
          {QStringLiteral("tags"), QJsonArray::fromStringList(notes.tags)},
          {QStringLiteral("star"), notes.starred}};
}

RunNotes RunNotebook::fromJson(const QJsonObject& noted) {
  RunNotes notes{.name = noted.value(QLatin1String("name")).toString(),
                 .text = noted.value(QLatin1String("notes")).toString(),
                 .tags = {},
                 .starred = noted.value(QLatin1String("star")).toBool(),
                 .called = noted.value(QLatin1String("called")).toString()};
  for (const QJsonValue tag : noted.value(QLatin1String("tags")).toArray()) notes.tags << tag.toString();
  return notes;
}

void RunNotebook::write() {
  if (!readable_) {
    Q_EMIT failed(unreadable(file_));
    return;
  }
  jobs_.run(
      [path = file_, changed = std::exchange(changed_, {})] { return std::pair(writeChanges(path, changed), changed); },
      [this](const std::pair<QString, QHash<QString, RunNotes>>& written) {
        const auto& [why, changed] = written;
        if (why.isEmpty()) return;
        // They are written with the next note.
        for (auto run = changed.begin(); run != changed.end(); ++run)
          if (!changed_.contains(run.key())) changed_.insert(run.key(), *run);
        Q_EMIT failed(why);
      });
}

void RunNotebook::setNotes(RunSeries* run, const RunNotes& notes) {
  if (run->notes() == notes) return;
  run->setNotes(notes);
  keep(run->id(), notes);
}

void RunNotebook::keep(const QString& id, const RunNotes& notes) {
  if (notes == RunNotes())
    notes_.remove(id);
  else
    notes_.insert(id, notes);
  changed_.insert(id, notes);
  delay_.start();
}

void RunNotebook::takeOver(const QString& id, const RunNotes& notes) {
  if (!notes_.contains(id) && notes != RunNotes()) keep(id, notes);
}

void RunNotebook::rename(RunSeries* run, const QString& name) {
  RunNotes notes = run->notes();
  if (name.trimmed() == run->givenName()) return;
  notes.name = name.trimmed();
  notes.called.clear();
  setNotes(run, notes);
}

void RunNotebook::toggleStar(RunSeries* run) {
  RunNotes notes = run->notes();
  notes.starred = !notes.starred;
  setNotes(run, notes);
}

}  // namespace accrue::ui
