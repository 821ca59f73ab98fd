// SPDX-License-Identifier: GPL-3.0-or-later
// RunNotebook: what runs are called and what the user says of them, in one file of the studio's own data, which the
// studios that are open share. A run's folder is never written.
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

/// Thread: GUI; the file is written in the background. Gives its notes to every run that the table gets.
class RunNotebook : public QObject {
  Q_OBJECT

 public:
  RunNotebook(RunTableModel* table, QString file, QObject* parent = nullptr);
  /// Writes what has not been written yet.
  ~RunNotebook() override;

  void setNotes(RunSeries* run, const RunNotes& notes);
  /// The notes on a run that is not in the table yet, unless there are some.
  void takeOver(const QString& id, const RunNotes& notes);
  void rename(RunSeries* run, const QString& name);
  void toggleStar(RunSeries* run);

  /// As the file has them.
  static QJsonObject toJson(const RunNotes& notes);
  static RunNotes fromJson(const QJsonObject& noted);

 Q_SIGNALS:
  /// The file could not be read or written; what was noted holds until the studio ends.
  void failed(const QString& why);

 private:
  void keep(const QString& id, const RunNotes& notes);
  void read();
  void write();

  QString file_;
  QHash<QString, RunNotes> notes_;    ///< by run id
  QHash<QString, RunNotes> changed_;  ///< not yet written; an empty note is one to be taken out
  QTimer delay_;
  bool readable_ = true;  ///< a file that cannot be read is not written over
  JobRunner jobs_;
};

}  // namespace accrue::ui
