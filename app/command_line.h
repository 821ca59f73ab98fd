// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

namespace accrue::ui {

struct CommandLine {
  QStringList files;    ///< specs and run folders, absolute
  QStringList plugins;  ///< libraries for the names in the spec, absolute
  bool demo = false;
  bool run = false;
  QString screenshot;
  bool exit_when_finished = false;
  bool self_test = false;
  bool paths = false;
  bool new_instance = false;

  /// Whether the command line requests work that needs no user.
  bool runsByItself() const { return demo || run || exit_when_finished || !screenshot.isEmpty(); }
  bool wantsInstanceOfItsOwn() const { return new_instance || !plugins.isEmpty() || runsByItself(); }
};

/// Parses the arguments; --help, --version and unknown options print and end the program (2 for a bad argument).
CommandLine parseCommandLine(const QStringList& arguments);

}  // namespace accrue::ui
