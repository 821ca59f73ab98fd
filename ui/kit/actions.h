// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QKeySequence>
#include <QList>
#include <array>

#include "clock.h"

class QActionGroup;

namespace accrue::ui {

/// All commands of the window: one QAction each, with an object name for tests. Menus, the tool bar, the shortcut sheet
/// and the command palette are built from these.
struct WindowActions {
  explicit WindowActions(QObject* owner);

  QAction *newSpec, *open, *openRun, *save, *saveAs, *exportPlot, *exportData, *exportCode, *exportScalars,
      *exportBundle, *importLog, *importFile, *copyFigure, *askOnClosing, *closeSpec, *quit;
  QAction *undo, *redo, *find, *palette;
  QAction *run, *pause, *runPaused, *stepPhase, *stepMicro, *stepUpdate, *stop, *kill, *checkpoint, *stopUnsaved,
      *setSteps, *resume, *branch, *attach, *demo;
  QAction *compareDialects, *runAllDialects, *runAllOptimizers, *isoBatch;
  QAction *fit, *follow, *logY, *groupSeeds, *lessSmoothing, *moreSmoothing, *zoomWindow, *nextWindow, *previousWindow,
      *copyValues, *showTable;
  QAction *openLesson, *nextStep, *previousStep, *checkLesson, *lessonHint, *resetLesson, *leaveLesson,
      *instructorNotes, *bugGallery;
  QAction *startPage, *resetLayout, *nextPane, *previousPane, *fullScreen;
  QAction *chooseLibraries, *runFolder, *copyCommand, *exportTrace;
  QAction *largerText, *smallerText, *normalText, *presenter, *narrate;
  QAction *help, *manual, *glossary, *shortcuts, *differences, *about, *report;
  QAction *queueRun, *pairedRun, *trainPair, *runSeeds, *groupRuns;
  QAction *renameRun, *runNotes, *starRun, *baseline, *compareRuns, *goToParting, *deleteRun;
  QActionGroup* clocks;
  QActionGroup* themes;
  QActionGroup* layouts;

  /// In constructor order, which is that of the menus; for the shortcut sheet and tests.
  const QList<QAction*>& all() const { return all_; }

 private:
  QAction* add(QObject* owner, const char* name, const QString& text, const QList<QKeySequence>& keys = {},
               const char* icon = nullptr, const QString& tip = {});

  QList<QAction*> all_;
};

/// Keys of a command as displayed, including those of a focused plot.
QString keysText(const QAction& action);

}  // namespace accrue::ui
