// SPDX-License-Identifier: GPL-3.0-or-later
#include "command_line.h"

#include <QCommandLineParser>
#include <QCoreApplication>
#include <QFileInfo>
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "accrue/run/base/printable.h"

namespace accrue::ui {

namespace {

[[noreturn]] void refuse(const QString& message) {
  std::fprintf(stderr, "accrue: %s. See accrue --help\n", printable(message.toStdString()).c_str());
  std::exit(2);
}

}  // namespace

CommandLine parseCommandLine(const QStringList& arguments) {
  const auto tr = [](const char* text) { return QCoreApplication::translate("CommandLine", text); };
  QCommandLineParser parser;
  parser.setApplicationDescription(tr("Distributed training with gradient accumulation, in a window."));
  const QCommandLineOption help = parser.addHelpOption();
  const QCommandLineOption version = parser.addVersionOption();
  const QCommandLineOption demo(QStringLiteral("demo"), tr("Open the built-in demo and run it."));
  const QCommandLineOption run(QStringLiteral("run"), tr("Run the opened spec."));
  const QCommandLineOption screenshot(QStringLiteral("screenshot"),
                                      tr("Save a picture of the window when the run ends."), tr("FILE.png"));
  const QCommandLineOption exits(QStringLiteral("exit-when-finished"),
                                 tr("Close when the run ends, with its exit status."));
  const QCommandLineOption self_test(QStringLiteral("selftest"), tr("Train a short built-in run and print one line."));
  const QCommandLineOption paths(QStringLiteral("paths"), tr("Print where settings, runs and cache are kept."));
  const QCommandLineOption instance(QStringLiteral("new-instance"),
                                    tr("Open a new window instead of passing the files to an open one."));
  const QCommandLineOption plugin(
      QStringLiteral("plugin"),
      tr("A library of yours, with train steps, losses or models that the spec names; may be repeated."), tr("FILE"));
  parser.addOptions({demo, run, plugin, screenshot, exits, self_test, paths, instance});
  parser.addPositionalArgument(QStringLiteral("FILE"), tr("Run specs (*.accrue) or run folders."),
                               QStringLiteral("[FILE\u2026]"));
  if (!parser.parse(arguments)) refuse(parser.errorText());
  if (parser.isSet(version)) parser.showVersion();
  if (parser.isSet(help)) parser.showHelp();

  CommandLine line;
  for (const QString& file : parser.positionalArguments()) {
    if (!QFileInfo::exists(file)) refuse(tr("%1 does not exist").arg(file));
    line.files.append(QFileInfo(file).absoluteFilePath());
  }
  for (const QString& file : parser.values(plugin)) {
    if (!QFileInfo(file).isFile()) refuse(tr("%1 is no plug-in library: there is no such file").arg(file));
    line.plugins.append(QFileInfo(file).absoluteFilePath());
  }
  line.demo = parser.isSet(demo);
  line.run = parser.isSet(run);
  line.screenshot = parser.value(screenshot);
  line.exit_when_finished = parser.isSet(exits);
  line.self_test = parser.isSet(self_test);
  line.paths = parser.isSet(paths);
  line.new_instance = parser.isSet(instance);
  if (line.self_test && (line.demo || line.run || !line.screenshot.isEmpty() || !line.files.isEmpty()))
    refuse(tr("--selftest trains a run of its own and opens no window; leave the other arguments out"));
  if (line.run && line.files.isEmpty() && !line.demo) refuse(tr("--run needs a spec"));
  for (const QString& file : line.files)
    if (line.run && QFileInfo(file).isDir())
      refuse(tr("--run trains a spec, and %1 is a folder. Leave --run out to look at a run").arg(file));
  const bool any_spec = std::ranges::any_of(line.files, [](const QString& file) { return !QFileInfo(file).isDir(); });
  if (!line.plugins.isEmpty() && !any_spec) refuse(tr("--plugin needs a spec that names what the library registers"));
  if (line.demo && !line.files.isEmpty()) refuse(tr("--demo opens its own spec; leave the files out"));
  return line;
}

}  // namespace accrue::ui
