// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_notebook.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QSaveFile>
#include <utility>

#include "models/run_table_model.h"

namespace accrue::ui {

namespace {

/// Empty on success.
QString writeFile(const QString& path, const QByteArray& text) {
  QDir().mkpath(QFileInfo(path).absolutePath());
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
}

RunNotebook::~RunNotebook() {
  if (delay_.isActive()) writeFile(file_, json());
}

void RunNotebook::read() {
  QFile file(file_);
  if (!file.exists()) return;
  QJsonParseError problem;
  const QByteArray text = file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
  const QJsonObject runs = QJsonDocument::fromJson(text, &problem).object().value(QLatin1String("runs")).toObject();
  if (problem.error != QJsonParseError::NoError) {
    readable_ = false;
    return;
  }
  for (auto run = runs.begin(); run != runs.end(); ++run) {
    const QJsonObject noted = run.value().toObject();
    RunNotes notes{.name = noted.value(QLatin1String("name")).toString(),
                   .text = noted.value(QLatin1String("notes")).toString(),
                   .tags = {},
                   .starred = noted.value(QLatin1String("star")).toBool()};
    for (const QJsonValue tag : noted.value(QLatin1String("tags")).toArray()) notes.tags << tag.toString();
    notes_.insert(run.key(), notes);
  }
}

QByteArray RunNotebook::json() const {
  QJsonObject runs;
  for (auto noted = notes_.begin(); noted != notes_.end(); ++noted)
    runs.insert(noted.key(), QJsonObject{{QStringLiteral("name"), noted->name},
                                         {QStringLiteral("notes"), noted->text},
                                         {QStringLiteral("tags"), QJsonArray::fromStringList(noted->tags)},
                                         {QStringLiteral("star"), noted->starred}});
  return QJsonDocument(QJsonObject{{QStringLiteral("accrue_notes"), 1}, {QStringLiteral("runs"), runs}}).toJson();
}

void RunNotebook::write() {
  if (!readable_) {
    Q_EMIT failed(
        tr("The notes on runs in %1 cannot be read, so this note is not kept. Remove or mend the file.").arg(file_));
    return;
  }
  jobs_.run([path = file_, text = json()] { return writeFile(path, text); },
            [this](const QString& why) {
              if (!why.isEmpty()) Q_EMIT failed(why);
            });
}

void RunNotebook::setNotes(RunSeries* run, const RunNotes& notes) {
  if (run->notes() == notes) return;
  run->setNotes(notes);
  if (notes == RunNotes())
    notes_.remove(run->id());
  else
    notes_.insert(run->id(), notes);
  delay_.start();
}

void RunNotebook::rename(RunSeries* run, const QString& name) {
  RunNotes notes = run->notes();
  if (name.trimmed() == run->name()) return;
  notes.name = name.trimmed();
  setNotes(run, notes);
}

void RunNotebook::toggleStar(RunSeries* run) {
  RunNotes notes = run->notes();
  notes.starred = !notes.starred;
  setNotes(run, notes);
}

}  // namespace accrue::ui
