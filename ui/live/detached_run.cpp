// SPDX-License-Identifier: GPL-3.0-or-later
#include "detached_run.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QProcess>
#include <QProcessEnvironment>

#include "kit/app_paths.h"

namespace accrue::ui {

namespace {

QString runner(const BridgeOptions& options) {
  const QFileInfo rank_program(QString::fromStdString(rankProgram(options)));
  for (const QString& program : {runProgram(), rank_program.dir().filePath(QStringLiteral("accrue-run"))})
    if (QFileInfo(program).isExecutable()) return program;
  return {};
}

}  // namespace

Result<void> resumeDetached(const BridgeOptions& options, const QString& folder) {
  const auto refuse = [&folder](const QString& why) {
    return fail(ErrorCode::device, why.toStdString(), folder.toStdString(),
                QCoreApplication::translate("DetachedRun", "The run is saved: Resume continues it here").toStdString());
  };
  const QString program = runner(options);
  if (program.isEmpty())
    return refuse(QCoreApplication::translate("DetachedRun", "accrue-run is not beside this program"));
  // QProcess detaches it: this program may go on, and a child of start_process() would have to be waited for.
  QProcess process;
  process.setProgram(program);
  process.setArguments({QStringLiteral("resume"), folder, QStringLiteral("--detach")});
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  if (!options.rank_program.empty())
    environment.insert(QStringLiteral("ACCRUE_RANK_PROGRAM"), QString::fromStdString(options.rank_program));
  process.setProcessEnvironment(environment);
  process.setStandardInputFile(QProcess::nullDevice());
  process.setStandardOutputFile(QProcess::nullDevice());
  process.setStandardErrorFile(QProcess::nullDevice());
  if (!process.startDetached())
    return refuse(QCoreApplication::translate("DetachedRun", "%1 could not be started").arg(program));
  return {};
}

}  // namespace accrue::ui
