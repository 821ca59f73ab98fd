// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_trash.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <utility>

#include "accrue/run/record/run_store.h"
#include "run_library.h"

namespace accrue::ui {

RunTrash::RunTrash(RunLibrary* library, QObject* parent) : QObject(parent), library_(library) {}

RunTrash::Moved RunTrash::move(Moved run) {
  const auto summary = read_run(run.folder.toStdString());
  // The folder's lock decides: another process may train it.
  if (summary && summary->state == "running") {
    run.why = tr("%1 is training. Stop it before it is deleted").arg(run.name);
  } else if (!QFileInfo::exists(run.folder)) {
    run.why = tr("The folder of %1 is not there any more: %2").arg(run.name, run.folder);
  } else if (!QFile::moveToTrash(run.folder, &run.in_trash) || run.in_trash.isEmpty()) {
    run.in_trash.clear();
    run.why = tr("%1 could not be moved to the trash: %2").arg(run.name, run.folder);
  }
  return run;
}

RunTrash::Moved RunTrash::bring_back(Moved run) {
  if (QFileInfo::exists(run.folder)) {
    run.why = tr("%1 stays in the trash: another folder has taken its place, %2").arg(run.name, run.folder);
    return run;
  }
  if (!QDir().rename(run.in_trash, run.folder)) {
    run.why = tr("%1 could not be brought back from %2").arg(run.name, run.in_trash);
    return run;
  }
  // The desktop's record of it: Trash/files/NAME has Trash/info/NAME.trashinfo.
  const QFileInfo trashed(run.in_trash);
  QFile::remove(QDir(trashed.absolutePath() + QStringLiteral("/../info")).filePath(trashed.fileName()) +
                QStringLiteral(".trashinfo"));
  return run;
}

void RunTrash::remove(const QList<RunSeries*>& runs) {
  QList<Moved> asked;
  for (RunSeries* run : runs) asked.append({run, run->folder(), run->name(), {}, {}});
  if (asked.isEmpty()) return;
  jobs_.run(
      [asked]() mutable {
        for (Moved& run : asked) run = move(std::move(run));
        return asked;
      },
      [this](const QList<Moved>& moved_runs) { takeMoved(moved_runs); });
}

void RunTrash::takeMoved(const QList<Moved>& runs) {
  QStringList names, problems;
  QList<Moved> gone;
  for (const Moved& run : runs) {
    if (run.in_trash.isEmpty()) {
      problems << run.why;
      continue;
    }
    library_->takeOut(run.run);
    names << run.name;
    gone.append(run);
  }
  if (!gone.isEmpty()) {
    last_ = gone;
    Q_EMIT moved(names);
  }
  if (!problems.isEmpty()) Q_EMIT failed(problems.join(QStringLiteral(". ")));
}

void RunTrash::undo() {
  QList<Moved> back = std::exchange(last_, {});
  if (back.isEmpty()) return;
  jobs_.run(
      [back]() mutable {
        for (Moved& run : back) run = bring_back(std::move(run));
        return back;
      },
      [this](const QList<Moved>& runs) { takeRestored(runs); });
}

void RunTrash::takeRestored(const QList<Moved>& runs) {
  QStringList names, problems;
  for (const Moved& run : runs) {
    if (!run.why.isEmpty()) {
      problems << run.why;
      continue;
    }
    library_->putBack(run.run);
    names << run.name;
  }
  if (!names.isEmpty()) Q_EMIT restored(names);
  if (!problems.isEmpty()) Q_EMIT failed(problems.join(QStringLiteral(". ")));
}

}  // namespace accrue::ui
