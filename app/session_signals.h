// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QSocketNotifier>
#include <memory>

#include "cli/signal_ladder.h"

namespace accrue::ui {

/// What a log-out (SIGTERM, SIGHUP) and Ctrl+C in the terminal (SIGINT) ask of the studio. A signal that was ignored
/// when the program began, as under nohup, stays ignored. One object a process. Thread: GUI.
class SessionSignals : public QObject {
  Q_OBJECT

 public:
  explicit SessionSignals(QObject* parent = nullptr);
  ~SessionSignals() override;

 Q_SIGNALS:
  /// `insists`: it came before, and still the program runs.
  void received(int number, bool insists);

 private:
  void read();

  std::unique_ptr<QSocketNotifier> arrived_;
  cli::SignalLadder ladder_;
};

}  // namespace accrue::ui
