// SPDX-License-Identifier: GPL-3.0-or-later
// Folders of the studio for preferences, state, runs, cache and its socket, by the XDG base directories (relative
// values are ignored, as the specification requires).
#pragma once

#include <QList>
#include <QString>
#include <utility>

namespace accrue::ui {

struct AppPaths {
  QString config_file;  ///< preferences only
  QString state_file;   ///< layout, recent files, remembered choices
  QString runs_dir;
  QString cache_dir;   ///< safe to delete
  QString socket_dir;  ///< private to the user
};

AppPaths appPaths();
/// The headless program: beside this one, unless ACCRUE_RUN_PROGRAM names another.
QString runProgram();
/// Output of --paths: pairs of a name and a path.
QList<std::pair<QString, QString>> describePaths(const AppPaths& paths);

}  // namespace accrue::ui
