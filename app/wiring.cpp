// SPDX-License-Identifier: GPL-3.0-or-later
#include "wiring.h"

#include <QApplication>
#include <QSettings>
#include <QTimer>
#include <chrono>
#include <string>
#include <utility>

#include "auto_run.h"
#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "kit/job_runner.h"
#include "kit/theme.h"
#include "live/close_guard.h"
#include "live/run_control.h"
#include "runs/run_library.h"
#include "session_signals.h"
#include "shell/dialogs.h"
#include "shell/main_window.h"
#include "single_instance.h"

namespace accrue::ui {

BridgeOptions bridgeOptions(bool interactive) {
  BridgeOptions options{.rank_program = qEnvironmentVariable("ACCRUE_RANK_PROGRAM").toStdString()};
  options.interactive = interactive;
  return options;
}

/// In order of construction: later members use earlier ones, and are destroyed first.
struct Studio::Parts {
  Parts(QApplication& application, const CommandLine& line, const AppPaths& paths)
      : settings(paths.state_file, QSettings::IniFormat),
        theme(application),
        preflight(&document),
        library(paths.runs_dir),
        control(bridgeOptions(!line.exit_when_finished), &document, &preflight, &library),
        window({.document = &document,
                .preflight = &preflight,
                .library = &library,
                .control = &control,
                .dialogs = &dialogs,
                .settings = &settings,
                .theme = &theme,
                .offer_drafts = !line.runsByItself()}),
        auto_run(line, &window, &preflight, &control, &library),
        instance(paths.socket_dir) {}

  QSettings settings;
  Theme theme;
  WidgetDialogs dialogs;
  SpecDocument document;
  PreflightRunner preflight;
  RunLibrary library;
  RunControl control;
  MainWindow window;
  AutoRun auto_run;
  SingleInstance instance;
  SessionSignals signals;
  JobRunner jobs;
  bool session_ends = false;
};

Studio::Studio(QApplication& application, const CommandLine& line, const AppPaths& paths)
    : parts_(std::make_unique<Parts>(application, line, paths)) {
  Parts* parts = parts_.get();
  if (!line.wantsInstanceOfItsOwn()) parts->instance.listen();
  QObject::connect(&parts->instance, &SingleInstance::filesReceived, &parts->window, [parts](const QStringList& files) {
    for (const QString& file : files) parts->window.openPath(file);
    parts->window.setWindowState(parts->window.windowState() & ~Qt::WindowMinimized);
    parts->window.raise();
    parts->window.activateWindow();
  });
  QObject::connect(&parts->signals, &SessionSignals::received, &parts->window,
                   [this](int number, bool insists) { endSession(number, insists); });
  // A session manager asks before it ends the session, and may still not end it.
  QObject::connect(
      &application, &QGuiApplication::commitDataRequest, &parts->window, [parts] { parts->window.keepEdits(); },
      Qt::DirectConnection);
}

void Studio::endSession(int signal, bool insists) {
  MainWindow& window = parts_->window;
  if (insists) {
    window.closeGuard()->stopNow();
    return;
  }
  if (std::exchange(parts_->session_ends, true)) return;
  QApplication::setQuitOnLastWindowClosed(false);  // which would exit with 0
  QObject::connect(
      &window, &MainWindow::closed, &window, [signal] { QCoreApplication::exit(128 + signal); },
      Qt::SingleShotConnection);
  window.endSession();
}

Studio::~Studio() = default;

void Studio::start() {
  Parts* parts = parts_.get();
  parts->window.show();
  QTimer::singleShot(0, &parts->window, [parts] { parts->auto_run.start(); });
  // Probing the devices takes a process and a third of a second, so it is done once the window is shown.
  QTimer::singleShot(std::chrono::milliseconds(500), &parts->window, [parts] {
    parts->jobs.run([program = rankProgram(parts->control.bridgeOptions())] { return probe_host(program); },
                    [parts](const Result<HostFacts>& facts) {
                      if (facts) parts->preflight.setHostFacts(*facts);
                    });
  });
}

}  // namespace accrue::ui
