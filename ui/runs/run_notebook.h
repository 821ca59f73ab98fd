// SPDX-License-Identifier: GPL-3.0-or-later
// RunNotebook: names and notes of runs, in one file of the studio's data that all open studios share. It never writes
// to a run's folder.
#pragma once

#include <QHash>
#include <QJsonObject>
#include <QObject>
#include <QString>
#include <QTimer>

#include "kit/job_runner.h"
#include "series/run_series.h"

namespace accrue::ui {

class RunTableModel;

/// Thread: GUI; the file is written in the background. Gives each new run of the table its notes.
class RunNotebook : public QObject {
  Q_OBJECT

 public:
  RunNotebook(RunTableModel* table, QString file, QObject* parent = nullptr);
  /// Writes pending changes.
  ~RunNotebook() override;

  void setNotes(RunSeries* run, const RunNotes& notes);
  /// Stores notes for a run that is not yet in the table, unless it has some.
  void takeOver(const QString& id, const RunNotes& notes);
  void rename(RunSeries* run, const QString& name);
  void toggleStar(RunSeries* run);

  /// Notes in the form of the file.
  static QJsonObject toJson(const RunNotes& notes);
  static RunNotes fromJson(const QJsonObject& noted);

 Q_SIGNALS:
  /// The file could not be read or written; notes are kept until the studio ends.
  void failed(const QString& why);

 private:
  void keep(const QString& id, const RunNotes& notes);
  void read();
  void write();

  QString file_;
  QHash<QString, RunNotes> notes_;    ///< by run id
  QHash<QString, RunNotes> changed_;  ///< not yet written; an empty note removes the entry
  QTimer delay_;
  bool readable_ = true;  ///< an unreadable file is not overwritten
  JobRunner jobs_;
};

}  // namespace accrue::ui
