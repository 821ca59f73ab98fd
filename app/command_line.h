// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

namespace accrue::ui {

struct CommandLine {
  QStringList files;  ///< specs and run folders, absolute
  bool demo = false;
  bool run = false;
  QString screenshot;
  bool exit_when_finished = false;
  bool self_test = false;
  bool paths = false;
  bool new_instance = false;

  bool wantsInstanceOfItsOwn() const {
    return new_instance || demo || run || exit_when_finished || !screenshot.isEmpty();
  }
};

/// Reads the arguments; --help, --version and unknown options print and end the program (2 for a bad argument).
CommandLine parseCommandLine(const QStringList& arguments);

}  // namespace accrue::ui
