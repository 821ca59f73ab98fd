// SPDX-License-Identifier: GPL-3.0-or-later
#include "actions.h"

#include <QActionGroup>
#include <QKeySequence>
#include <tuple>

#include "text.h"
#include "theme.h"

namespace accrue::ui {

namespace {

QList<QKeySequence> keys(const char* first, const char* second = nullptr) {
  QList<QKeySequence> list{QKeySequence(QLatin1String(first))};
  if (second) list.append(QKeySequence(QLatin1String(second)));
  return list;
}

}  // namespace

QAction* WindowActions::add(QObject* owner, const char* name, const QString& text, const QList<QKeySequence>& keys,
                            const char* icon, const QString& tip) {
  auto* action = new QAction(text, owner);
  action->setObjectName(QLatin1String(name));
  action->setShortcuts(keys);
  if (icon) action->setIcon(themedIcon(QLatin1String(icon)));
  QString plain = text.section(QLatin1Char('\t'), 0, 0);
  plain.remove(QLatin1Char('&')).remove(QStringLiteral("\u2026"));
  action->setIconText(plain);
  action->setStatusTip(tip.isEmpty() ? plain : tip);
  // Assistive technology identifies a button without a text by its tooltip, so that begins with the command's name.
  const QString called = keys.isEmpty() ? plain
                                        //: Tooltip of a command: its name (its key)
                                        : tr("%1 (%2)").arg(plain, keys.front().toString(QKeySequence::NativeText));
  action->setToolTip(tip.isEmpty() ? called : called + QLatin1Char('\n') + tip);
  all_.append(action);
  return action;
}

// Keys are written out, because QKeySequence::StandardKey is empty for Save as, Quit and others on some platforms.
WindowActions::WindowActions(QObject* owner) {
  newSpec = add(owner, "newSpecAction", tr("&New spec"), keys("Ctrl+N"), "document-new");
  open = add(owner, "openAction", tr("&Open\u2026"), keys("Ctrl+O"), "open", tr("Open a run spec"));
  openRun = add(owner, "openRunAction", tr("Open &run folder\u2026"), {}, "folder");
  save = add(owner, "saveAction", tr("&Save"), keys("Ctrl+S"), "save");
  saveAs = add(owner, "saveAsAction", tr("Save &as\u2026"), keys("Ctrl+Shift+S"));
  exportPlot = add(owner, "exportPlotAction", tr("&Export plots\u2026"), keys("Ctrl+E"), "export");
  exportData = add(owner, "exportDataAction", tr("Export &data\u2026"), {}, nullptr,
                   tr("Every point of the shown runs on every clock, as CSV or JSON, including smoothed values "
                      "and the smoothing factor"));
  exportCode = add(owner, "exportCodeAction", tr("E&xport to code\u2026"), {}, nullptr,
                   tr("This spec as a script or a configuration for another tool"));
  exportScalars = add(owner, "exportScalarsAction", tr("Export to &TensorBoard\u2026"), {}, nullptr,
                      tr("The selected run's scalars as event files"));
  exportBundle = add(owner, "exportBundleAction", tr("Export a &bundle\u2026"), {}, nullptr,
                     tr("Runs, the spec and the layout as one file for another machine"));
  importFile = add(owner, "importFileAction", tr("I&mport a bundle or a log\u2026"), {}, nullptr,
                   tr("Runs out of a bundle, or the curves that another tool logged: event files, tables, JSON lines, "
                      "printed lines; a bundle or a table can also be dropped on the window"));
  importLog = add(owner, "importLogAction", tr("&Import a log folder\u2026"), {}, nullptr,
                  tr("TensorBoard's event files, MLflow's metrics or a trainer's state, to be compared with runs of "
                     "Accrue"));
  askOnClosing = add(owner, "askOnClosingAction", tr("As&k again on closing"), {}, nullptr,
                     tr("Forget the remembered answer to closing the window during a run"));
  closeSpec = add(owner, "closeSpecAction", tr("C&lose spec"), keys("Ctrl+W"));
  quit = add(owner, "quitAction", tr("&Quit"), keys("Ctrl+Q"));

  undo = add(owner, "undoAction", tr("&Undo"), keys("Ctrl+Z"), "undo");
  redo = add(owner, "redoAction", tr("&Redo"), keys("Ctrl+Shift+Z", "Ctrl+Y"), "redo");
  copyFigure = add(owner, "copyFigureAction", tr("&Copy figure"), keys("Ctrl+Shift+C"), "copy",
                   tr("The plots with legend and caption, to the clipboard"));
  find = add(owner, "findAction", tr("&Find a field"), keys("Ctrl+F"), "search",
             tr("Find a field by its name, here or in another tool"));
  palette = add(owner, "paletteAction", tr("Command &palette\u2026"), keys("Ctrl+Shift+P"), nullptr,
                tr("Find a command by its name or help text, and run it"));

  run = add(owner, "runAction", tr("&Run"), keys("F5"), "run", tr("Check the spec and train"));
  pause = add(owner, "pauseAction", tr("&Pause"), keys("F8"), "pause", tr("Pause after this micro-step, or continue"));
  runPaused = add(owner, "runPausedAction", tr("Ru&n paused"), {}, nullptr,
                  tr("Check the spec, start the ranks, and hold before the first micro-step"));
  stepPhase = add(owner, "stepPhaseAction", tr("Next p&hase"), keys("F10"), "step-phase",
                  tr("To the end of the next phase: forward, scale, backward, reduce, unscale, clip, step, schedule, "
                     "zero; if nothing is running, starts the run paused"));
  stepMicro = add(owner, "stepMicroAction", tr("Next &micro-step"), keys("F11"), "step-micro",
                  tr("To the end of the next backward, before a full window is reduced; if nothing is running, "
                     "starts the run paused"));
  stepUpdate = add(owner, "stepUpdateAction", tr("Next &update"), keys("Shift+F11"), "step-update");
  stop = add(owner, "stopAction", tr("&Stop"), keys("Shift+F5"), "stop",
             tr("Save at the end of this update and end the run; press again while stopping to kill the ranks"));
  stopUnsaved = add(owner, "stopUnsavedAction", tr("S&top without saving"), {}, nullptr,
                    tr("End after this micro-step; what was trained since the last checkpoint is lost"));
  kill = add(owner, "killAction", tr("&Kill"), keys("Ctrl+Shift+K"), "kill", tr("End all ranks at once"));
  checkpoint = add(owner, "checkpointAction", tr("&Checkpoint now"), keys("Ctrl+K"), "checkpoint",
                   tr("Save at the end of this update"));
  setSteps = add(owner, "setStepsAction", tr("Change accumulation steps\u2026"), keys("Ctrl+Shift+N"), nullptr,
                 tr("Change N from the next window on (dialects accrue and accelerate only)"));
  resume = add(owner, "resumeAction", tr("R&esume"), keys("Ctrl+Shift+R"), nullptr,
               tr("Continue the selected run from its newest checkpoint"));
  branch = add(owner, "branchAction", tr("&Branch from this run with the current set-up"), {}, nullptr,
               tr("Run this set-up from the selected run's newest checkpoint, as a run of its own: in another layout, "
                  "at another rate, for longer"));
  attach = add(owner, "attachAction", tr("&Attach"), {}, nullptr,
               tr("Follow the selected run, which another process trains"));
  compareDialects = add(owner, "compareDialectsAction", tr("&What would each dialect do\u2026"), keys("Ctrl+Shift+W"),
                        "compare", tr("The current set-up under the rules of all five systems, side by side"));
  runAllDialects = add(owner, "runAllDialectsAction", tr("Run all &five dialects"), {}, "run",
                       tr("Train the current set-up under all five systems, one after another, and compare them"));
  runAllOptimizers =
      add(owner, "runAllOptimizersAction", tr("Run all seven &optimizers"), {}, "run",
          tr("Train the current set-up with each of Colossal-AI's optimizers, one after another, and compare them"));
  isoBatch = add(owner, "isoBatchAction", tr("&Iso-batch explorer\u2026"), keys("Ctrl+Shift+I"), "grid",
                 tr("Every micro-batch, N and number of ranks of one product: time, memory and exactness"));
  compareDialects->setIconText(tr("What would each do?"));
  queueRun = add(owner, "queueRunAction", tr("Add to the &queue"), keys("Ctrl+Return"), nullptr,
                 tr("Train this set-up when the runs before it have ended; go on editing meanwhile"));
  pairedRun = add(owner, "pairedRunAction", tr("&Paired run"), {}, nullptr,
                  tr("Train this set-up beside the focused run: one key changed at most, same seed and order; the "
                     "difference of the losses is drawn"));
  trainPair = add(owner, "trainPairAction", tr("&Train both of a pair"), {}, nullptr,
                  tr("Train the focused run's spec and this set-up at the same time, on shared cores, and "
                     "draw the difference of their losses as it grows"));
  runSeeds = add(owner, "runSeedsAction", tr("Run several &seeds\u2026"), {}, nullptr,
                 tr("Train this set-up under several seeds, one after another: their spread is its noise"));
  groupRuns = add(owner, "groupRunsAction", tr("Group &runs\u2026"), {}, nullptr,
                  tr("Mean and spread over seeds, or of the runs that share a key's value; is a difference noise?"));
  demo = add(owner, "demoAction", tr("Run the &demo"), {}, "demo");
  openLesson = add(owner, "openLessonAction", tr("&Lessons"), keys("Ctrl+L"), nullptr,
                   tr("Choose a lesson, or go back to the open one"));
  nextStep = add(owner, "nextStepAction", tr("&Next"), keys("Alt+PgDown"), nullptr, tr("The lesson's next step"));
  previousStep =
      add(owner, "previousStepAction", tr("&Previous"), keys("Alt+PgUp"), nullptr, tr("The lesson's previous step"));
  checkLesson = add(owner, "checkLessonAction", tr("&Check my answer"), keys("Ctrl+Shift+Return"), nullptr,
                    tr("Ask again what the step's runs show, and say what is missing"));
  lessonHint = add(owner, "lessonHintAction", tr("&Hint"), {}, nullptr, tr("Show the step's hint"));
  resetLesson = add(owner, "resetLessonAction", tr("&Reset"), {}, nullptr,
                    tr("Begin the lesson again; its runs so far no longer count"));
  leaveLesson =
      add(owner, "leaveLessonAction", tr("L&eave"), {}, nullptr, tr("End the lesson and show all panels and fields"));
  instructorNotes = add(owner, "instructorNotesAction", tr("&Instructor notes"), {}, nullptr,
                        tr("The open lesson's notes for teachers, in a window of their own"));
  bugGallery = add(owner, "bugGalleryAction", tr("Bug &gallery"), keys("Ctrl+Shift+G"), "warning",
                   tr("Fifteen bugs: see what each does, what detects it, and how to fix it"));

  // Single letters belong to a focused plot, which handles them itself; here they are only displayed.
  fit = add(owner, "fitAction", tr("&Fit\tA"), {}, "fit", tr("Show all data"));
  follow = add(owner, "followAction", tr("Follow &live\tEnd"), {}, "follow", tr("Keep the newest point in view"));
  logY = add(owner, "logYAction", tr("Log &y\tL"), {}, "log-y", tr("Logarithmic loss axis"));
  groupSeeds = add(owner, "groupSeedsAction", tr("Seeds as a &band"), {}, nullptr,
                   tr("The loss of runs that differ by their seed alone as their mean, in a band from minimum to "
                      "maximum"));
  groupSeeds->setCheckable(true);
  lessSmoothing = add(owner, "lessSmoothingAction", tr("L&ess smoothing\tShift+S"));
  moreSmoothing = add(owner, "moreSmoothingAction", tr("M&ore smoothing\tS"));
  zoomWindow = add(owner, "zoomWindowAction", tr("Zoom to &window\tW"), {}, nullptr,
                   tr("Show the accumulation window under the cursor, or the newest; a second time, everything"));
  nextWindow = add(owner, "nextWindowAction", tr("&Next window\tN"));
  previousWindow = add(owner, "previousWindowAction", tr("Pre&vious window\tP"));
  copyValues = add(owner, "copyValuesAction", tr("&Copy the values at the cursor\tC"));
  showTable = add(owner, "showTableAction", tr("Show as &table\tT"), {}, nullptr,
                  tr("The focused plot as numbers, in a window of its own"));
  follow->setCheckable(true);
  logY->setCheckable(true);
  clocks = new QActionGroup(owner);
  int number = 1;
  for (const Clock clock : allClocks) {
    auto* action = new QAction(tr("%1\t%2").arg(clockName(clock)).arg(number++), clocks);
    action->setObjectName(QStringLiteral("clockAction.%1").arg(clockKey(clock)));
    action->setCheckable(true);
    action->setStatusTip(clockHelp(clock));
    action->setData(static_cast<int>(clock));
    all_.append(action);
  }

  layouts = new QActionGroup(owner);
  const std::array<std::tuple<const char*, QString, QString>, 4> layout_rows = {
      {{"studio", tr("&Studio"), tr("Set-up, plots, window and runs: the default layout")},
       {"compare", tr("&Compare"), tr("Plots and a large table of runs")},
       {"debug", tr("&Debug"), tr("Plots, a wide window panel and the pipeline")},
       {"lesson", tr("&Lesson"), tr("One panel on the left, the plots, and the window panel")}}};
  for (int number = 0; const auto& [name, text, tip] : layout_rows) {
    const QByteArray object_name = QByteArray("layoutAction.") + name;
    const QByteArray key = QByteArray("Ctrl+") + QByteArray::number(number + 1);
    QAction* action = add(owner, object_name.constData(), text, keys(key.constData()), nullptr, tip);
    action->setData(number++);
    layouts->addAction(action);
  }
  startPage =
      add(owner, "startPageAction", tr("Start pa&ge"), {}, nullptr, tr("Show the start page, or the plots again"));
  resetLayout = add(owner, "resetLayoutAction", tr("&Reset layout"));
  nextPane = add(owner, "nextPaneAction", tr("&Next pane"), keys("F6"));
  previousPane = add(owner, "previousPaneAction", tr("&Previous pane"), keys("Shift+F6"));
  fullScreen = add(owner, "fullScreenAction", tr("&Full screen"), keys("Ctrl+Shift+F11"));
  fullScreen->setCheckable(true);
  themes = new QActionGroup(owner);
  const std::array<std::pair<const char*, QString>, 4> theme_rows = {{{"system", tr("&As the system")},
                                                                      {"light", tr("&Light")},
                                                                      {"dark", tr("&Dark")},
                                                                      {"highContrast", tr("&High contrast")}}};
  for (int mode = 0; mode < static_cast<int>(theme_rows.size()); ++mode) {
    auto* action = new QAction(theme_rows[static_cast<std::size_t>(mode)].second, themes);
    action->setObjectName(
        QStringLiteral("themeAction.%1").arg(QLatin1String(theme_rows[static_cast<std::size_t>(mode)].first)));
    action->setCheckable(true);
    action->setData(mode);
    all_.append(action);
  }

  largerText = add(owner, "largerTextAction", tr("&Larger text"), keys("Ctrl++", "Ctrl+="));
  smallerText = add(owner, "smallerTextAction", tr("S&maller text"), keys("Ctrl+-"));
  normalText = add(owner, "normalTextAction", tr("N&ormal text"), keys("Ctrl+0"));
  presenter = add(owner, "presenterAction", tr("Pre&senter layout"), keys("Ctrl+Shift+L"), nullptr,
                  tr("The plots and the accumulation window alone, with large text; choose again to undo"));
  presenter->setCheckable(true);
  narrate = add(owner, "narrateAction", tr("N&arrate the run"), {}, nullptr,
                tr("What the run does in sentences, in the status bar and for screen readers"));
  narrate->setCheckable(true);

  // Their keys act while the runs table has the focus.
  renameRun = add(owner, "renameRunAction", tr("Re&name the run"), keys("F2"));
  runNotes = add(owner, "runNotesAction", tr("N&otes and tags\u2026"), keys("F4"), nullptr,
                 tr("Name, tags, star and notes of the focused run; its folder is not changed"));
  starRun = add(owner, "starRunAction", tr("S&tar"), keys("*"), nullptr, tr("Star the selected runs, or take it away"));
  baseline = add(owner, "baselineAction", tr("Set as &baseline"), keys("Ctrl+B"), nullptr,
                 tr("Compare all runs to the focused one, in columns of the runs table; choose again to undo"));
  compareRuns = add(owner, "compareRunsAction", tr("&Compare two runs\u2026"), keys("D"), nullptr,
                    tr("The keys that differ, how both ended and where their losses part: the baseline, or the other "
                       "run that is selected or shown, and the focused one"));
  goToParting = add(owner, "goToPartingAction", tr("&Go to where they part"), keys("G"), nullptr,
                    tr("Put the cursor where the losses of the two runs part"));
  deleteRun = add(owner, "deleteRunAction", tr("&Delete the run"), keys("Del"), nullptr,
                  tr("Move the folders of the selected runs to the trash"));
  for (QAction* action : {renameRun, runNotes, starRun, compareRuns, goToParting, deleteRun})
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  chooseLibraries = add(owner, "chooseLibrariesAction", tr("Choose plug-in &libraries\u2026"), {}, nullptr,
                        tr("The libraries with the models, losses or data that this spec names; its ranks load them"));
  runFolder = add(owner, "runFolderAction", tr("Open the run's &folder"), {}, "folder");
  copyCommand = add(owner, "copyCommandAction", tr("&Copy the run's command line"), {}, "copy",
                    tr("The same run without a window, in a terminal"));
  help = add(owner, "helpAction", tr("&Explain"), keys("F1"), nullptr,
             tr("Explains the field, or the word, with the focus; opens the manual where there is nothing to explain"));
  manual = add(owner, "manualAction", tr("&Manual"), {}, nullptr, tr("How to use the studio and the command line"));
  glossary = add(owner, "glossaryAction", tr("&Glossary"), {}, nullptr, tr("The words that the program uses"));
  exportTrace = add(owner, "exportTraceAction", tr("Export the run's &trace\u2026"), {}, nullptr,
                    tr("What each rank did and when, for Perfetto and chrome://tracing"));
  shortcuts = add(owner, "shortcutsAction", tr("&Keyboard shortcuts"), keys("Ctrl+/"), "keyboard");
  differences = add(owner, "differencesAction", tr("&Differences from the originals"), {}, {},
                    tr("What other systems would do differently with this spec"));
  report = add(owner, "copyReportAction", tr("&Copy diagnostic report"));
  about = add(owner, "aboutAction", tr("&About Accrue"));
}

QString keysText(const QAction& action) {
  QStringList texts;
  for (const QKeySequence& sequence : action.shortcuts()) texts.append(sequence.toString(QKeySequence::NativeText));
  const QString in_text = action.text().section(QLatin1Char('\t'), 1);
  if (!in_text.isEmpty()) texts.append(in_text);
  return texts.join(QStringLiteral("  "));
}

}  // namespace accrue::ui
