// SPDX-License-Identifier: GPL-3.0-or-later
// RunTrash: moves run folders to the desktop's trash and back. The runs leave the table and return unchanged.
#pragma once

#include <QList>
#include <QObject>
#include <QString>
#include <QStringList>

#include "kit/job_runner.h"

namespace accrue::ui {

class RunLibrary;
class RunSeries;

/// Thread: GUI; folders are moved in the background.
class RunTrash : public QObject {
  Q_OBJECT

 public:
  explicit RunTrash(RunLibrary* library, QObject* parent = nullptr);
  /// Refuses runs that train, here or elsewhere. moved() or failed() follows, or both.
  void remove(const QList<RunSeries*>& runs);
  /// Restores the runs of the last removal.
  void undo();
  bool canUndo() const { return !last_.isEmpty(); }

 Q_SIGNALS:
  void moved(const QStringList& names);
  void restored(const QStringList& names);
  void failed(const QString& why);

 private:
  struct Moved {
    RunSeries* run = nullptr;
    QString folder;
    QString name;
    QString in_trash;  ///< empty: it could not be moved
    QString why;
  };
  static Moved move(Moved run);
  static Moved bring_back(Moved run);
  void takeMoved(const QList<Moved>& runs);
  void takeRestored(const QList<Moved>& runs);

  RunLibrary* library_;
  QList<Moved> last_;
  JobRunner jobs_;
};

}  // namespace accrue::ui
