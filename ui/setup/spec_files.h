// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <vector>

#include "accrue/run/findings.h"
#include "accrue/run/run_spec.h"
#include "accrue/run/sample_lock.h"

class QMenu;
class QSettings;
class QWidget;

namespace accrue::ui {

class SpecDialogs;
class RunLibrary;
class RunSeries;
class SpecDocument;

/// Whether a file's name ends in a suffix such as ".csv", in capitals or not.
inline bool hasSuffix(const QString& path, const char* suffix) {
  return path.endsWith(QLatin1String(suffix), Qt::CaseInsensitive);
}

/// What the File menu does: opens and saves specs and run folders, and keeps the list of recent ones.
class WindowFiles : public QObject {
  Q_OBJECT

 public:
  static constexpr int recent_limit = 10;

  WindowFiles(SpecDocument* document, RunLibrary* library, SpecDialogs* dialogs, QSettings* settings, QWidget* window);

  void newSpec();
  /// The built-in demo as a new document; false (and a message) if it cannot be read.
  bool openDemo();
  /// A spec that comes with the program, as a new document.
  bool openPreset(const QString& resource, const QString& name);
  void askAndOpen();
  void askAndOpenRun();
  /// A spec as text, as a new document; false (and a message) if it cannot be read, or the user keeps other edits.
  bool openText(const QString& text, const QString& name);
  /// A spec file or a run folder; of other files, whoever wants them is told.
  void openPath(const QString& path);
  /// A run's spec as a new document under the run's name. In a lesson, whose document stays, the spec as an edit, which
  /// is refused where it would change a locked key.
  void load(const RunSeries& run);
  /// Likewise, as a copy that is to be edited.
  void clone(const RunSeries& run);
  bool save();
  bool saveAs();
  /// Before another document takes the place of this one. Without edits, nothing is asked. Edits of a spec that came
  /// with the program, as a lesson's, are set aside: editsSetAside() tells of them. About others the user is asked;
  /// false if they are to stay.
  bool mayReplace();
  /// The document came with the program.
  void markBuiltIn() { built_in_ = true; }
  /// The edits that were set aside last are the document again.
  void bringBack();

  QStringList recentFiles() const;
  void fillRecentMenu(QMenu* menu);
  /// The specs that come with the program, by the names that they give their runs.
  void fillPresetMenu(QMenu* menu);

 Q_SIGNALS:
  void documentOpened();
  /// Before documentOpened(): the document is this run's spec.
  void runTaken(const accrue::ui::RunSeries& run);
  void recentChanged();
  void failed(const QString& text);
  void editsSetAside(const QString& name);
  /// The edits are back, or yet another document took the place of that which they were set aside for.
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
  bool built_in_ = false;  ///< the document came with the program
  SetAside set_aside_;
  bool replacing_ = false;  ///< the document that the edits were set aside for is not open yet
};

}  // namespace accrue::ui
