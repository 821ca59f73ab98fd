// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QSocketNotifier>
#include <memory>

#include "accrue/run/base/owned_fd.h"
#include "cli/signal_ladder.h"

namespace accrue::ui {

/// Requests to the studio by a log-out (SIGTERM, SIGHUP) and by Ctrl+C in the terminal (SIGINT). A signal that was
/// ignored when the program began, as under nohup, stays ignored. One object per process. Thread: GUI.
class SessionSignals : public QObject {
  Q_OBJECT

 public:
  explicit SessionSignals(QObject* parent = nullptr);
  ~SessionSignals() override;

 Q_SIGNALS:
  /// `insists`: the signal came before, and the program still runs.
  void received(int number, bool insists);

 private:
  void read();

  FdPair pipe_;
  std::unique_ptr<QSocketNotifier> arrived_;
  cli::SignalLadder ladder_;
};

}  // namespace accrue::ui
