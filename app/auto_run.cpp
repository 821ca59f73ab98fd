// SPDX-License-Identifier: GPL-3.0-or-later
#include "auto_run.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QImage>
#include <QTimer>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/base/printable.h"
#include "document/preflight_runner.h"
#include "document/spec_files.h"
#include "live/run_control.h"
#include "runs/run_library.h"
#include "series/event_pump.h"
#include "shell/main_window.h"

namespace accrue::ui {

AutoRun::AutoRun(const CommandLine& line, MainWindow* window, PreflightRunner* preflight, RunControl* control,
                 RunLibrary* library, QObject* parent)
    : QObject(parent), line_(line), window_(window), preflight_(preflight), control_(control), library_(library) {
  connect(library_, &RunLibrary::loaded, this, [this] {
    if (reading_) finishWhenRead();
  });
  connect(library_, &RunLibrary::openFailed, this, [this](const QString& folder, const QString& message) {
    if (!reading_) return;
    if (line_.exit_when_finished)
      std::fprintf(stderr, "%s\n", printable((folder + QLatin1String(": ") + message).toStdString()).c_str());
    finish(accrue::exit_status(ErrorCode::config));
  });
  connect(control_, &RunControl::ended, this, [this](RunSeries*, int exit_status) { finish(exit_status); });
  connect(control_, &RunControl::refused, this, [this](const std::vector<Finding>& findings) {
    if (line_.exit_when_finished)
      for (const Finding& finding : findings) std::fprintf(stderr, "%s\n", printable(finding.text()).c_str());
    finish(accrue::exit_status(ErrorCode::config));
  });
  connect(control_, &RunControl::commandFailed, this, [this](const Error& error) {
    if (line_.exit_when_finished) std::fprintf(stderr, "%s\n", printable(error.text()).c_str());
    finish(accrue::exit_status(error.code));
  });
  connect(window_->files(), &SpecFiles::failed, this, [this](const QString& text) {
    unreadable_ = true;
    if (line_.exit_when_finished) std::fprintf(stderr, "%s\n", printable(text.toStdString()).c_str());
    finish(accrue::exit_status(ErrorCode::config));
  });
}

void AutoRun::start() {
  for (const QString& file : line_.files) window_->openPath(file);
  if (unreadable_) return;  // the form still holds another spec, which was not requested
  chooseLibraries();
  if (line_.demo)
    window_->runDemo();
  else if (line_.run)
    control_->start();
  else if (!line_.screenshot.isEmpty() || line_.exit_when_finished)
    finishWhenRead();  // no run to wait for
}

void AutoRun::chooseLibraries() {
  std::vector<PluginRecord> libraries;
  for (const QString& plugin : line_.plugins) {
    const QFileInfo file(plugin);
    // The spec's check reports a file that cannot be read.
    libraries.push_back({plugin.toStdString(), file.fileName().toStdString(),
                         sha256_of_file(plugin.toStdString()).value_or(std::string())});
  }
  if (!libraries.empty()) preflight_->chooseLibraries(std::move(libraries));
}

void AutoRun::finishWhenRead() {
  reading_ = std::any_of(line_.files.begin(), line_.files.end(), [this](const QString& file) {
    return QFileInfo(file).isDir() && !library_->isLoaded(library_->find(file));
  });
  if (!reading_) finish(0);
}

void AutoRun::finish(int exit_status) {
  if (finished_ || (line_.screenshot.isEmpty() && !line_.exit_when_finished)) return;
  finished_ = true;
  // The models have the last batch now; a few frames later it is on the screen.
  QTimer::singleShot(8 * EventPump::frame, this, [this, exit_status] { leave(exit_status); });
}

void AutoRun::leave(int exit_status) {
  if (!line_.screenshot.isEmpty() && !window_->picture().save(line_.screenshot)) {
    std::fprintf(stderr, "accrue: %s could not be written. Choose a folder that exists and is writable\n",
                 printable(line_.screenshot.toStdString()).c_str());
    exit_status = exit_status == 0 ? accrue::exit_status(ErrorCode::disk) : exit_status;
  }
  if (!line_.exit_when_finished) return;
  window_->close();
  QCoreApplication::exit(exit_status);
}

}  // namespace accrue::ui
