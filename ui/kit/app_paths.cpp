// SPDX-License-Identifier: GPL-3.0-or-later
#include "app_paths.h"

#include <unistd.h>

#include <QCoreApplication>
#include <QDir>

#include "accrue/run/record/run_store.h"

namespace accrue::ui {

namespace {

QString xdgDir(const char* variable, const QString& fallback) {
  const QString value = qEnvironmentVariable(variable);
  return QDir::isAbsolutePath(value) ? value : fallback;
}

}  // namespace

AppPaths appPaths() {
  const QDir home = QDir::home();
  const QString config = xdgDir("XDG_CONFIG_HOME", home.filePath(QStringLiteral(".config")));
  const QString state = xdgDir("XDG_STATE_HOME", home.filePath(QStringLiteral(".local/state")));
  const QString cache = xdgDir("XDG_CACHE_HOME", home.filePath(QStringLiteral(".cache")));
  const QString runtime = xdgDir("XDG_RUNTIME_DIR", QString());
  AppPaths paths;
  paths.config_file = QDir(config).filePath(QStringLiteral("accrue/accrue.conf"));
  paths.state_file = QDir(state).filePath(QStringLiteral("accrue/studio.conf"));
  paths.runs_dir = QString::fromStdString(default_runs_dir().string());
  paths.cache_dir = QDir(cache).filePath(QStringLiteral("accrue"));
  paths.socket_dir = runtime.isEmpty() ? QDir::temp().filePath(QStringLiteral("accrue-%1").arg(getuid()))
                                       : QDir(runtime).filePath(QStringLiteral("accrue"));
  return paths;
}

QString runProgram() {
  const QString named = qEnvironmentVariable("ACCRUE_RUN_PROGRAM");
  return named.isEmpty() ? QDir(QCoreApplication::applicationDirPath()).filePath(QStringLiteral("accrue-run")) : named;
}

QList<std::pair<QString, QString>> describePaths(const AppPaths& paths) {
  return {{QStringLiteral("config"), paths.config_file},
          {QStringLiteral("state"), paths.state_file},
          {QStringLiteral("runs"), paths.runs_dir},
          {QStringLiteral("cache"), paths.cache_dir},
          {QStringLiteral("sockets"), paths.socket_dir}};
}

}  // namespace accrue::ui
