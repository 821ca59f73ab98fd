// SPDX-License-Identifier: GPL-3.0-or-later
#include "command_table.h"

#include <array>

namespace accrue::ui {

namespace {

using Use = CommandUse;

constexpr MenuRow topMenu(const char* name, const char* text) {
  return {.kind = MenuRow::menu, .name = name, .text = text};
}

/// Filled by the feature that it belongs to.
constexpr MenuRow submenu(const char* name, const char* text) {
  return {.kind = MenuRow::submenu, .name = name, .text = text};
}

constexpr MenuRow separator() {
  return {};
}

/// The switches of docks and tool bars.
constexpr MenuRow docks() {
  return {.kind = MenuRow::docks};
}

constexpr MenuRow command(Command id, const char* name, const char* text, const char* keys = "", const char* icon = "",
                          const char* help = "", CommandUse use = Use::plain) {
  return {MenuRow::command, id, name, text, keys, icon, help, use};
}

// Keys are written out: QKeySequence::StandardKey is empty for Save as, Quit and others on some platforms.
constexpr auto buildTable() {
  using enum Command;
  return std::to_array<MenuRow>({
      topMenu("fileMenu", "&File"),
      command(newSpec, "newSpec", "&New spec", "Ctrl+N", "document-new"),
      command(open, "open", "&Open\u2026", "Ctrl+O", "open", "Open a run spec"),
      submenu("recentMenu", "Open re&cent"),
      submenu("presetMenu", "&Presets"),
      command(openRun, "openRun", "Open &run folder\u2026", "", "folder"),
      command(importFile, "importFile", "I&mport a bundle or a log\u2026", "", "",
              "Runs out of a bundle, or the curves that another tool logged: event files, tables, JSON lines, printed "
              "lines; a bundle or a table can also be dropped on the window"),
      command(importLog, "importLog", "&Import a log folder\u2026", "", "",
              "TensorBoard's event files, MLflow's metrics or a trainer's state, to be compared with runs of Accrue"),
      separator(),
      command(save, "save", "&Save", "Ctrl+S", "save"),
      command(saveAs, "saveAs", "Save &as\u2026", "Ctrl+Shift+S"),
      separator(),
      command(exportPlot, "exportPlot", "&Export plots\u2026", "Ctrl+E", "export"),
      command(exportData, "exportData", "Export &data\u2026", "", "",
              "Every point of the shown runs on every clock, as CSV or JSON, including smoothed values and the "
              "smoothing factor"),
      command(exportBundle, "exportBundle", "Export a &bundle\u2026", "", "",
              "Runs and the spec as one file for another machine"),
      command(exportScalars, "exportScalars", "Export to &TensorBoard\u2026", "", "",
              "The selected run's scalars as event files"),
      command(exportCode, "exportCode", "E&xport to code\u2026", "", "",
              "This spec as a script or a configuration for another tool"),
      separator(),
      command(askOnClosing, "askOnClosing", "As&k again on closing", "", "",
              "Forget the remembered answer to closing the window during a run"),
      command(closeSpec, "closeSpec", "C&lose spec", "Ctrl+W"),
      command(quit, "quit", "&Quit", "Ctrl+Q"),
      topMenu("editMenu", "&Edit"),
      command(undo, "undo", "&Undo", "Ctrl+Z", "undo"),
      command(redo, "redo", "&Redo", "Ctrl+Shift+Z Ctrl+Y", "redo"),
      separator(),
      command(copyFigure, "copyFigure", "&Copy figure", "Ctrl+Shift+C", "copy",
              "The plots with legend and caption, to the clipboard"),
      command(find, "find", "&Find a field", "Ctrl+F", "search", "Find a field by its name, here or in another tool"),
      command(palette, "palette", "Command &palette\u2026", "Ctrl+Shift+P", "",
              "Find a command by its name or help text, and run it"),
      separator(),
      command(renameRun, "renameRun", "Re&name the run", "F2", "", "", Use::inRuns),
      command(runNotes, "runNotes", "N&otes and tags\u2026", "F4", "",
              "Name, tags, star and notes of the focused run; its folder is not changed", Use::inRuns),
      command(starRun, "starRun", "S&tar", "*", "", "Star the selected runs, or take it away", Use::inRuns),
      command(deleteRun, "deleteRun", "&Delete the run", "Del", "",
              "Move the folders of the selected runs to the trash", Use::inRuns),
      topMenu("runMenu", "&Run"),
      command(run, "run", "&Run", "F5", "run", "Check the spec and train"),
      command(queueRun, "queueRun", "Add to the &queue", "Ctrl+Return", "",
              "Train this set-up when the runs before it have ended; go on editing meanwhile"),
      command(runPaused, "runPaused", "Ru&n paused", "", "",
              "Check the spec, start the ranks, and hold before the first micro-step"),
      command(pause, "pause", "&Pause", "F8", "pause", "Pause after this micro-step, or continue"),
      separator(),
      command(stepPhase, "stepPhase", "Next p&hase", "F10", "step-phase",
              "To the end of the next phase: forward, scale, backward, reduce, unscale, clip, step, schedule, zero; if "
              "nothing is running, starts the run paused"),
      command(stepMicro, "stepMicro", "Next &micro-step", "F11", "step-micro",
              "To the end of the next backward, before a full window is reduced; if nothing is running, starts the run "
              "paused"),
      command(stepUpdate, "stepUpdate", "Next &update", "Shift+F11", "step-update"),
      separator(),
      command(stop, "stop", "&Stop", "Shift+F5", "stop",
              "Save at the end of this update and end the run; press again while stopping to kill the ranks"),
      command(stopUnsaved, "stopUnsaved", "S&top without saving", "", "",
              "End after this micro-step; what was trained since the last checkpoint is lost"),
      command(kill, "kill", "&Kill", "Ctrl+Shift+K", "kill", "End all ranks at once"),
      separator(),
      command(checkpoint, "checkpoint", "&Checkpoint now", "Ctrl+K", "checkpoint", "Save at the end of this update"),
      command(resume, "resume", "R&esume", "Ctrl+Shift+R", "", "Continue the selected run from its newest checkpoint"),
      command(branch, "branch", "&Branch from this run with the current set-up", "", "",
              "Run this set-up from the selected run's newest checkpoint, as a run of its own: in another layout, at "
              "another rate, for longer"),
      command(attach, "attach", "&Attach", "", "", "Follow the selected run, which another process trains"),
      separator(),
      command(setSteps, "setSteps", "Change accumulation steps\u2026", "Ctrl+Shift+N", "",
              "Change N from the next window on (dialects accrue and accelerate only)"),
      topMenu("viewMenu", "&View"),
      command(startPage, "startPage", "Start pa&ge", "", "", "Show the start page, or the plots again"),
      separator(),
      docks(),
      separator(),
      command(nextPane, "nextPane", "&Next pane", "F6"),
      command(previousPane, "previousPane", "&Previous pane", "Shift+F6"),
      command(fullScreen, "fullScreen", "&Full screen", "Ctrl+Shift+F11", "", "", Use::checkable),
      command(presenter, "presenter", "Pre&senter layout", "Ctrl+Shift+L", "",
              "The plots and the accumulation window alone, with large text; choose again to undo", Use::checkable),
      separator(),
      command(largerText, "largerText", "&Larger text", "Ctrl++ Ctrl+="),
      command(smallerText, "smallerText", "S&maller text", "Ctrl+-"),
      command(normalText, "normalText", "N&ormal text", "Ctrl+0"),
      command(narrate, "narrate", "N&arrate the run", "", "",
              "What the run does in sentences, in the status bar and for screen readers", Use::checkable),
      submenu("themeMenu", "&Theme"),
      separator(),
      submenu("layoutMenu", "La&youts"),
      command(resetLayout, "resetLayout", "&Reset layout"),
      topMenu("plotMenu", "&Plot"),
      command(fit, "fit", "&Fit", "A", "fit", "Show all data", Use::inPlots),
      command(follow, "follow", "Follow &live", "End", "follow", "Keep the newest point in view",
              Use::checkableInPlots),
      command(logY, "logY", "Log &y", "L", "log-y", "Logarithmic loss axis", Use::checkableInPlots),
      command(groupSeeds, "groupSeeds", "Seeds as a &band", "", "",
              "The loss of runs that differ by their seed alone as their mean, in a band from minimum to maximum",
              Use::checkable),
      separator(),
      command(zoomWindow, "zoomWindow", "Zoom to &window", "W", "",
              "Show the accumulation window under the cursor, or the newest; a second time, everything", Use::inPlots),
      command(nextWindow, "nextWindow", "&Next window", "N", "", "", Use::inPlots),
      command(previousWindow, "previousWindow", "Pre&vious window", "P", "", "", Use::inPlots),
      separator(),
      command(copyValues, "copyValues", "&Copy the values at the cursor", "C", "", "", Use::inPlots),
      command(showTable, "showTable", "Show as &table", "T", "", "The focused plot as numbers, in a window of its own",
              Use::inPlots),
      separator(),
      command(moreSmoothing, "moreSmoothing", "M&ore smoothing", "S", "", "", Use::inPlots),
      command(lessSmoothing, "lessSmoothing", "L&ess smoothing", "Shift+S", "", "", Use::inPlots),
      submenu("clockMenu", "&X axis"),
      topMenu("compareMenu", "&Compare"),
      command(compareDialects, "compareDialects", "&What would each dialect do\u2026", "Ctrl+Shift+W", "compare",
              "The current set-up under the rules of all five systems, side by side"),
      command(runAllDialects, "runAllDialects", "Run all &five dialects", "", "run",
              "Train the current set-up under all five systems, one after another, and compare them"),
      command(runAllOptimizers, "runAllOptimizers", "Run all seven &optimizers", "", "run",
              "Train the current set-up with each of Colossal-AI's optimizers, one after another, and compare them"),
      command(isoBatch, "isoBatch", "&Iso-batch explorer\u2026", "Ctrl+Shift+I", "grid",
              "Every micro-batch, N and number of ranks of one product: time, memory and exactness"),
      separator(),
      command(baseline, "baseline", "Set as &baseline", "Ctrl+B", "",
              "Compare all runs to the focused one, in columns of the runs table; choose again to undo"),
      command(compareRuns, "compareRuns", "&Compare two runs\u2026", "D", "",
              "The keys that differ, how both ended and where their losses part: the baseline, or the other run that "
              "is selected or shown, and the focused one",
              Use::inRuns),
      command(goToParting, "goToParting", "&Go to where they part", "G", "",
              "Put the cursor where the losses of the two runs part", Use::inRuns),
      separator(),
      command(pairedRun, "pairedRun", "&Paired run", "", "",
              "Train this set-up beside the focused run: one key changed at most, same seed and order; the difference "
              "of the losses is drawn"),
      command(trainPair, "trainPair", "&Train both of a pair", "", "",
              "Train the focused run's spec and this set-up at the same time, on shared cores, and draw the difference "
              "of their losses as it grows"),
      command(runSeeds, "runSeeds", "Run several &seeds\u2026", "", "",
              "Train this set-up under several seeds, one after another: their spread is its noise"),
      command(groupRuns, "groupRuns", "Group &runs\u2026", "", "",
              "Mean and spread over seeds, or of the runs that share a key's value; is a difference noise?"),
      topMenu("learnMenu", "&Learn"),
      command(openLesson, "openLesson", "&Lessons", "Ctrl+L", "", "Choose a lesson, or go back to the open one"),
      command(previousStep, "previousStep", "&Previous", "Alt+PgUp", "", "The lesson's previous step"),
      command(nextStep, "nextStep", "&Next", "Alt+PgDown", "", "The lesson's next step"),
      separator(),
      command(checkLesson, "checkLesson", "&Check my answer", "Ctrl+Shift+Return", "",
              "Ask again what the step's runs show, and say what is missing"),
      command(lessonHint, "lessonHint", "&Hint", "", "", "Show the step's hint"),
      command(resetLesson, "resetLesson", "&Reset", "", "", "Begin the lesson again; its runs so far no longer count"),
      command(leaveLesson, "leaveLesson", "L&eave", "", "", "End the lesson and show all panels and fields"),
      separator(),
      command(instructorNotes, "instructorNotes", "&Instructor notes", "", "",
              "The open lesson's notes for teachers, in a window of their own"),
      command(bugGallery, "bugGallery", "Bug &gallery", "Ctrl+Shift+G", "warning",
              "Fifteen bugs: see what each does, what detects it, and how to fix it"),
      command(demo, "demo", "Run the &demo", "", "demo"),
      topMenu("toolsMenu", "&Tools"),
      command(chooseLibraries, "chooseLibraries", "Choose plug-in &libraries\u2026", "", "",
              "The libraries with the models, losses or data that this spec names; its ranks load them"),
      command(runFolder, "runFolder", "Open the run's &folder", "", "folder"),
      command(copyCommand, "copyCommand", "&Copy the run's command line", "", "copy",
              "The same run without a window, in a terminal"),
      command(exportTrace, "exportTrace", "Export the run's &trace\u2026", "", "",
              "What each rank did and when, for Perfetto and chrome://tracing"),
      topMenu("helpMenu", "&Help"),
      command(help, "help", "&Explain", "F1", "",
              "Explains the field, or the word, with the focus; opens the manual where there is nothing to explain"),
      command(manual, "manual", "&Manual", "", "", "How to use the studio and the command line"),
      command(glossary, "glossary", "&Glossary", "", "", "The words that the program uses"),
      command(shortcuts, "shortcuts", "&Keyboard shortcuts", "Ctrl+/", "keyboard"),
      command(differences, "differences", "&Differences from the originals", "", "",
              "What other systems would do differently with this spec"),
      separator(),
      command(copyReport, "copyReport", "&Copy diagnostic report"),
      command(about, "about", "&About Accrue"),
  });
}

constexpr auto table = buildTable();

constexpr bool listsEachCommandOnce() {
  std::array<int, commandCount> times{};
  for (const MenuRow& row : table)
    if (row.kind == MenuRow::command) ++times[static_cast<std::size_t>(row.id)];
  for (const int each : times)
    if (each != 1) return false;
  return true;
}
static_assert(listsEachCommandOnce());

}  // namespace

std::span<const MenuRow> menuTable() {
  return table;
}

}  // namespace accrue::ui
