// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <vector>

#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/sample_lock.h"
#include "accrue/run/fields/spec.h"

class QMenu;
class QSettings;
class QWidget;

namespace accrue::ui {

class SpecDialogs;
class RunLibrary;
class RunSeries;
class SpecDocument;

/// Whether a file's name ends in a suffix such as ".csv", in any case.
inline bool hasSuffix(const QString& path, const char* suffix) {
  return path.endsWith(QLatin1String(suffix), Qt::CaseInsensitive);
}

/// Commands of the File menu: opens and saves specs and run folders, and keeps the list of recent ones.
class SpecFiles : public QObject {
  Q_OBJECT

 public:
  static constexpr int recent_limit = 10;

  SpecFiles(SpecDocument* document, RunLibrary* library, SpecDialogs* dialogs, QSettings* settings, QWidget* window);

  void newSpec();
  /// Opens the built-in demo as a new document; false (and a message) if it cannot be read.
  bool openDemo();
  /// Opens a spec of the program as a new document.
  bool openPreset(const QString& resource, const QString& name);
  void askAndOpen();
  void askAndOpenRun();
  /// Opens a spec as text as a new document; false (and a message) if it cannot be read, or if the user keeps other
  /// edits.
  bool openText(const QString& text, const QString& name);
  /// Opens a spec file or a run folder; other files are passed on by signals.
  void openPath(const QString& path);
  /// Opens a run's spec as a new document with the run's name. In a lesson, whose document stays, it is an edit, which
  /// is refused if it would change a locked key.
  void load(const RunSeries& run);
  /// Does the same, as a copy for editing.
  void clone(const RunSeries& run);
  bool save();
  bool saveAs();
  /// Call before another document replaces this one. Without edits, nothing is asked. Edits of a spec of the program,
  /// as of a lesson, are set aside: editsSetAside() reports them. About others the user is asked; returns false if they
  /// are to stay.
  bool mayReplace();
  /// Marks the document as one of the program.
  void markBuiltIn() { built_in_ = true; }
  /// Restores the edits that were set aside last.
  void bringBack();

  QStringList recentFiles() const;
  void fillRecentMenu(QMenu* menu);
  /// Adds the specs of the program, with the names of their runs.
  void fillPresetMenu(QMenu* menu);

 Q_SIGNALS:
  void documentOpened();
  /// Emitted before documentOpened(): the document is this run's spec.
  void runTaken(const accrue::ui::RunSeries& run);
  void recentChanged();
  void failed(const QString& text);
  void editsSetAside(const QString& name);
  /// The edits are restored, or yet another document replaced the one for which they were set aside.
  void setAsideOver();
  /// The file is a lesson.
  void lessonRequested(const QString& path);
  /// The file is a bundle, or a table of curves.
  void importRequested(const QString& path);

 private:
  void take(const RunSeries& run, const QString& name);
  struct SetAside {
    RunSpec spec;
    QString name;
    SampleLock lock = SampleLock::none;
  };
  void remember(const QString& path);
  QString lastFolder() const;

  SpecDocument* document_;
  RunLibrary* library_;
  SpecDialogs* dialogs_;
  QSettings* settings_;
  QWidget* window_;
  bool built_in_ = false;  ///< the document belongs to the program
  SetAside set_aside_;
  bool replacing_ = false;  ///< the document for which edits were set aside is not open yet
};

}  // namespace accrue::ui
