// SPDX-License-Identifier: GPL-3.0-or-later
// The table of the studio's commands: names, keys and help in the order of the menus. Menus, palette, shortcut sheet
// and the manual's page of keys read it.
#pragma once

#include <span>

namespace accrue::ui {

/// A command of the studio. Actions holds one QAction for each.
enum class Command {
  newSpec,
  open,
  openRun,
  importFile,
  importLog,
  save,
  saveAs,
  exportPlot,
  exportData,
  exportBundle,
  exportScalars,
  exportCode,
  askOnClosing,
  closeSpec,
  quit,
  undo,
  redo,
  copyFigure,
  find,
  palette,
  renameRun,
  runNotes,
  starRun,
  deleteRun,
  run,
  queueRun,
  runPaused,
  pause,
  stepPhase,
  stepMicro,
  stepUpdate,
  stop,
  stopUnsaved,
  kill,
  checkpoint,
  resume,
  branch,
  attach,
  setSteps,
  startPage,
  nextPane,
  previousPane,
  fullScreen,
  presenter,
  largerText,
  smallerText,
  normalText,
  narrate,
  resetLayout,
  fit,
  follow,
  logY,
  groupSeeds,
  zoomWindow,
  nextWindow,
  previousWindow,
  copyValues,
  showTable,
  moreSmoothing,
  lessSmoothing,
  compareDialects,
  runAllDialects,
  runAllOptimizers,
  isoBatch,
  baseline,
  compareRuns,
  goToParting,
  pairedRun,
  trainPair,
  runSeeds,
  groupRuns,
  openLesson,
  previousStep,
  nextStep,
  checkLesson,
  lessonHint,
  resetLesson,
  leaveLesson,
  instructorNotes,
  bugGallery,
  demo,
  chooseLibraries,
  runFolder,
  copyCommand,
  exportTrace,
  help,
  manual,
  glossary,
  shortcuts,
  differences,
  copyReport,
  about,
};
inline constexpr int commandCount = static_cast<int>(Command::about) + 1;

/// Where a command's keys work, and whether it can be switched on.
enum class CommandUse {
  plain,
  checkable,
  inRuns,   ///< its keys work while the runs table has the focus
  inPlots,  ///< its key belongs to a focused plot, which handles it; the menu only shows it
  checkableInPlots,
};

/// A row of the menu bar: a menu begins, or an entry of the menu that began last.
struct MenuRow {
  enum Kind { menu, submenu, command, docks, separator };

  Kind kind = separator;
  Command id{};           ///< of a command
  const char* name = "";  ///< a menu's object name; a command's, without "Action"
  const char* text = "";  ///< with its mnemonic
  const char* keys = "";  ///< separated by spaces
  const char* icon = "";
  const char* help = "";  ///< longer description; empty if the name says it all
  CommandUse use = CommandUse::plain;
};

std::span<const MenuRow> menuTable();

}  // namespace accrue::ui
