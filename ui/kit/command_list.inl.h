// SPDX-License-Identifier: GPL-3.0-or-later
// Every command of the studio and every key, in the order of the menus. A new command is a row here; the feature that
// carries it out connects its action. command_table.h makes the names of these rows, command_table.cpp the table.
//
//   COMMAND(name, text, keys, icon, help, place)   an entry of a menu; what is left out at the end is empty
//   NAMED(kind, name, ...)                         what else has keys
//   ROW(kind, ...)                                 what has none, or is one of several
//
// A text has its mnemonic. Keys are separated by spaces. They are written out: QKeySequence::StandardKey is empty for
// Save as, Quit and others on some platforms.

ROW(menu, "fileMenu", "&File")
COMMAND(newSpec, "&New spec", "Ctrl+N", "document-new")
COMMAND(open, "&Open\u2026", "Ctrl+O", "open", "Open a run spec")
ROW(submenu, "recentMenu", "Open re&cent")
ROW(submenu, "presetMenu", "&Presets")
COMMAND(openRun, "Open &run folder\u2026", "", "folder")
COMMAND(importFile, "I&mport a bundle or a log\u2026", "", "",
        "Runs of a bundle, or curves that another tool logged: event files, tables, JSON lines, printed lines. A "
        "bundle or a table can also be dropped on the window")
COMMAND(importLog, "&Import a log folder\u2026", "", "",
        "TensorBoard's event files, MLflow's metrics or a trainer's state, to be compared with runs of Accrue")
ROW(separator)
COMMAND(save, "&Save", "Ctrl+S", "save")
COMMAND(saveAs, "Save &as\u2026", "Ctrl+Shift+S")
ROW(separator)
COMMAND(exportPlot, "&Export plots\u2026", "Ctrl+E", "export")
COMMAND(
    exportData, "Export &data\u2026", "", "",
    "Every point of the shown runs on every clock, as CSV or JSON, including smoothed values and the smoothing factor")
COMMAND(exportBundle, "Export a &bundle\u2026", "", "", "Runs and the spec as one file for another machine")
COMMAND(exportScalars, "Export to &TensorBoard\u2026", "", "", "The selected run's scalars as event files")
COMMAND(exportCode, "E&xport to code\u2026", "", "", "This spec as a script or a configuration for another tool")
COMMAND(exportWeights, "Export for &Hugging Face\u2026", "", "",
        "The focused run's final weights as a folder that transformers opens, with the tokenizer if it is known")
ROW(separator)
COMMAND(askOnClosing, "As&k again on closing", "", "",
        "Forget the remembered answer to closing the window during a run")
COMMAND(closeSpec, "C&lose spec", "Ctrl+W")
COMMAND(quit, "&Quit", "Ctrl+Q")

ROW(menu, "editMenu", "&Edit")
COMMAND(undo, "&Undo", "Ctrl+Z", "undo")
COMMAND(redo, "&Redo", "Ctrl+Shift+Z Ctrl+Y", "redo")
ROW(separator)
COMMAND(copyFigure, "&Copy figure", "Ctrl+Shift+C", "copy", "The plots with legend and caption, to the clipboard")
COMMAND(find, "&Find a field", "Ctrl+F", "search", "Find a field by its name, here or in another tool")
COMMAND(palette, "Command &palette\u2026", "Ctrl+Shift+P", "", "Find a command by its name or help text, and run it")
ROW(separator)
COMMAND(renameRun, "Re&name the run", "F2", "", "", inRuns)
COMMAND(runNotes, "N&otes and tags\u2026", "F4", "",
        "Name, tags, star and notes of the focused run; its folder is not changed", inRuns)
COMMAND(starRun, "S&tar", "*", "", "Star the selected runs, or take it away", inRuns)
COMMAND(deleteRun, "&Delete the run", "Del", "", "Move the folders of the selected runs to the trash", inRuns)
NAMED(keys, toggleRun, "Show or hide the run", "Space", inRuns)
NAMED(keys, queueUp, "Train the waiting run earlier", "Alt+Up", inQueue)
NAMED(keys, queueDown, "Train the waiting run later", "Alt+Down", inQueue)
NAMED(keys, queueRemove, "Take the waiting run out of the queue", "Del", inQueue)

ROW(menu, "runMenu", "&Run")
COMMAND(run, "&Run", "F5", "run", "Check the spec and train")
COMMAND(queueRun, "Add to the &queue", "Ctrl+Return", "",
        "Train this set-up when the runs before it have ended; go on editing meanwhile")
COMMAND(runPaused, "Ru&n paused", "", "", "Check the spec, start the ranks, and hold before the first micro-step")
COMMAND(pause, "&Pause", "F8", "pause", "Pause after this micro-step, or continue")
NAMED(keys, togglePause, "Pause or continue", "Space", inPlots)
ROW(separator)
COMMAND(stepPhase, "Next p&hase", "F10", "step-phase",
        "To the end of the next phase: forward, scale, backward, reduce, unscale, clip, step, schedule, zero; if "
        "nothing is running, starts the run paused")
COMMAND(
    stepMicro, "Next &micro-step", "F11", "step-micro",
    "To the end of the next backward, before a full window is reduced; if nothing is running, starts the run paused")
COMMAND(stepUpdate, "Next &update", "Shift+F11", "step-update")
ROW(separator)
COMMAND(stop, "&Stop", "Shift+F5", "stop",
        "Save at the end of this update and end the run; press again while stopping to kill the ranks")
COMMAND(stopUnsaved, "S&top without saving", "", "",
        "End after this micro-step; what was trained since the last checkpoint is lost")
COMMAND(kill, "&Kill", "Ctrl+Shift+K", "kill", "End all ranks at once")
ROW(separator)
COMMAND(checkpoint, "&Checkpoint now", "Ctrl+K", "checkpoint", "Save at the end of this update")
COMMAND(resume, "R&esume", "Ctrl+Shift+R", "", "Continue the selected run from its newest checkpoint")
COMMAND(branch, "&Branch from this run with the current set-up", "", "",
        "Run this set-up from the selected run's newest checkpoint, as a run of its own: in another layout, at another "
        "rate, for longer")
COMMAND(attach, "&Attach", "", "", "Follow the selected run, which another process trains")
ROW(separator)
COMMAND(setSteps, "Change accumulation steps\u2026", "Ctrl+Shift+N", "",
        "Change N from the next window on (dialects accrue and accelerate only)")

ROW(menu, "viewMenu", "&View")
COMMAND(startPage, "Start pa&ge", "", "", "Show the start page, or the plots again")
NAMED(keys, chooseCard, "Choose a card", "1 \u2026 9", onStartPage)
ROW(separator)
NAMED(panels, panels, "Panel", "Alt+1 Alt+2 Alt+3 Alt+4 Alt+5 Alt+6 Alt+7 Alt+8 Alt+9")
ROW(separator)
COMMAND(nextPane, "&Next pane", "F6")
COMMAND(previousPane, "&Previous pane", "Shift+F6")
NAMED(checkable, fullScreen, "&Full screen", "Ctrl+Shift+F11")
NAMED(checkable, presenter, "Pre&senter layout", "Ctrl+Shift+L", "",
      "The plots and the accumulation window alone, with large text; choose again to undo")
ROW(separator)
COMMAND(largerText, "&Larger text", "Ctrl++ Ctrl+=")
COMMAND(smallerText, "S&maller text", "Ctrl+-")
COMMAND(normalText, "N&ormal text", "Ctrl+0")
NAMED(checkable, narrate, "N&arrate the run", "", "",
      "What the run does in sentences, in the status bar and for screen readers")
ROW(submenu, "themeMenu", "&Theme", "Theme")
ROW(state, "themeAction.system", "&As the system")
ROW(state, "themeAction.light", "&Light")
ROW(state, "themeAction.dark", "&Dark")
ROW(state, "themeAction.highContrast", "&High contrast")
ROW(separator)
ROW(submenu, "layoutMenu", "La&youts", "Layout")
ROW(choice, "layoutAction.studio", "&Studio", "Ctrl+1", "Set-up, plots, window and runs: the default layout")
ROW(choice, "layoutAction.compare", "&Compare", "Ctrl+2", "Plots and a large table of runs")
ROW(choice, "layoutAction.debug", "&Debug", "Ctrl+3", "Plots, a wide window panel and the pipeline")
ROW(choice, "layoutAction.lesson", "&Lesson", "Ctrl+4", "One panel on the left, the plots, and the window panel")
COMMAND(resetLayout, "&Reset layout")

ROW(menu, "plotMenu", "&Plot")
COMMAND(fit, "&Fit", "A", "fit", "Show all data", inPlots)
NAMED(checkable, follow, "Follow &live", "End", "follow", "Keep the newest point in view", inPlots)
NAMED(checkable, logY, "Log &y", "L", "log-y", "Logarithmic loss axis", inPlots)
NAMED(checkable, groupSeeds, "Seeds as a &band", "", "",
      "The loss of runs that differ by their seed alone as their mean, in a band from minimum to maximum")
ROW(separator)
COMMAND(zoomWindow, "Zoom to &window", "W", "",
        "Show the accumulation window under the cursor, or the newest; a second time, everything", inPlots)
COMMAND(nextWindow, "&Next window", "N", "", "", inPlots)
COMMAND(previousWindow, "Pre&vious window", "P", "", "", inPlots)
ROW(separator)
COMMAND(copyValues, "&Copy the values at the cursor", "C", "", "", inPlots)
COMMAND(showTable, "Show as &table", "T", "", "The focused plot as numbers, in a window of its own", inPlots)
ROW(separator)
COMMAND(moreSmoothing, "M&ore smoothing", "S", "", "", inPlots)
COMMAND(lessSmoothing, "L&ess smoothing", "Shift+S", "", "", inPlots)
NAMED(keys, pan, "Pan, five times as far with Shift", "Left Right", inPlots)
NAMED(keys, zoomIn, "Zoom in", "+ =", inPlots)
NAMED(keys, zoomOut, "Zoom out", "- _", inPlots)
NAMED(keys, zoomBack, "Zoom back", "Backspace", inPlots)
NAMED(keys, zoomForward, "Zoom forward", "Shift+Backspace", inPlots)
NAMED(keys, moveCursor, "Move the cursor by one update", "Ctrl+Left Ctrl+Right", inPlots)
NAMED(keys, removeCursor, "Remove the cursor", "Esc", inPlots)
NAMED(keys, plotMenu, "The plot's own menu", "Shift+F10", inPlots)
ROW(submenu, "clockMenu", "&X axis", "X axis")
NAMED(clocks, clocks, "1 2 3 4 5 6 7")

ROW(menu, "compareMenu", "&Compare")
COMMAND(compareDialects, "&What would each dialect do\u2026", "Ctrl+Shift+W", "compare",
        "The current set-up under the rules of all five systems, side by side")
COMMAND(runAllDialects, "Run all &five dialects", "", "run",
        "Train the current set-up under all five systems, one after another, and compare them")
COMMAND(runAllOptimizers, "Run all seven &optimizers", "", "run",
        "Train the current set-up with each of Colossal-AI's optimizers, one after another, and compare them")
COMMAND(isoBatch, "&Iso-batch explorer\u2026", "Ctrl+Shift+I", "grid",
        "Every micro-batch, N and number of ranks of one product: time, memory and exactness")
ROW(separator)
COMMAND(baseline, "Set as &baseline", "Ctrl+B", "",
        "Compare all runs to the focused one, in columns of the runs table; choose again to undo")
COMMAND(compareRuns, "&Compare two runs\u2026", "D", "",
        "Compare the focused run with the baseline or with the other run on show: which keys differ, how each ended, "
        "where the losses part",
        inRuns)
COMMAND(goToParting, "&Go to where they part", "G", "", "Put the cursor where the losses of the two runs part", inRuns)
ROW(separator)
COMMAND(pairedRun, "&Paired run", "", "",
        "Train this set-up beside the focused run: one key changed at most, same seed and order; the difference of the "
        "losses is drawn")
COMMAND(trainPair, "&Train both of a pair", "", "",
        "Train the focused run's spec and this set-up at the same time, on shared cores, and draw the difference of "
        "their losses as it grows")
COMMAND(runSeeds, "Run several &seeds\u2026", "", "",
        "Train this set-up under several seeds, one after another: their spread is its noise")
COMMAND(groupRuns, "Group &runs\u2026", "", "",
        "Mean and spread over seeds, or of the runs that share a key's value; is a difference noise?")

ROW(menu, "learnMenu", "&Learn")
COMMAND(openLesson, "&Lessons", "Ctrl+L", "", "Choose a lesson, or go back to the open one")
COMMAND(previousStep, "&Previous", "Alt+PgUp", "", "The lesson's previous step")
COMMAND(nextStep, "&Next", "Alt+PgDown", "", "The lesson's next step")
ROW(separator)
COMMAND(checkLesson, "&Check my answer", "Ctrl+Shift+Return", "",
        "Ask again what the step's runs show, and say what is missing")
COMMAND(lessonHint, "&Hint", "", "", "Show the step's hint")
COMMAND(resetLesson, "&Reset", "", "", "Begin the lesson again; its runs so far no longer count")
COMMAND(leaveLesson, "L&eave", "", "", "End the lesson and show all panels and fields")
ROW(separator)
COMMAND(instructorNotes, "&Instructor notes", "", "", "The open lesson's notes for teachers, in a window of their own")
COMMAND(bugGallery, "Bug &gallery", "Ctrl+Shift+G", "warning",
        "Fifteen bugs: see what each does, what detects it, and how to fix it")
COMMAND(demo, "Run the &demo", "", "demo")

ROW(menu, "toolsMenu", "&Tools")
COMMAND(chooseLibraries, "Choose plug-in &libraries\u2026", "", "",
        "The libraries with the models, losses or data that this spec names; its ranks load them")
COMMAND(runFolder, "Open the run's &folder", "", "folder")
COMMAND(copyCommand, "&Copy the run's command line", "", "copy", "The same run without a window, in a terminal")
COMMAND(exportTrace, "Export the run's &trace\u2026", "", "",
        "What each rank did and when, for Perfetto and chrome://tracing")

ROW(menu, "helpMenu", "&Help")
COMMAND(help, "&Explain", "F1", "",
        "Explains the field, or the word, with the focus; opens the manual where there is nothing to explain")
COMMAND(manual, "&Manual", "", "", "How to use the studio and the command line")
NAMED(keys, manualBack, "Back to the previous page", "Alt+Left", inManual)
COMMAND(glossary, "&Glossary", "", "", "The words that the program uses")
COMMAND(shortcuts, "&Keyboard shortcuts", "Ctrl+/", "keyboard")
COMMAND(differences, "&Differences from the originals", "", "",
        "What other systems would do differently with this spec")
ROW(separator)
COMMAND(copyReport, "&Copy diagnostic report")
COMMAND(about, "&About Accrue")

#undef COMMAND
#undef NAMED
#undef ROW
