// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/events/run_state.h"
#include "accrue/run/fields/findings.h"

namespace accrue::ui {

class MessageBar;
class RunControl;
class RunLibrary;
class RunSeries;

/// Events of runs as messages of the window, each with at most one helpful action.
class RunMessages : public QObject {
  Q_OBJECT

 public:
  RunMessages(RunControl* control, RunLibrary* library, MessageBar* bar, QObject* parent = nullptr);

 Q_SIGNALS:
  /// Requests the first field with an error; the second signal requests the rank's log.
  void errorFieldRequested();
  void logRequested();

 private:
  void showRefused(const std::vector<Finding>& findings);
  void showWarned(const std::vector<Finding>& findings);
  void showFailed(const Error& error);
  void showState(RunState state);
  void showEnd(RunSeries* run);
  void withdrawStale();
  void offerInterrupted();
  void offerAttach(const QString& folder);
  void offerResume(const QString& id, const QString& text, const QString& folder);

  RunControl* control_;
  RunLibrary* library_;
  MessageBar* bar_;
  bool offered_ = false;
  QString offered_folder_;          ///< of the run that was offered to attach or resume
  std::size_t shown_problems_ = 0;  ///< problems of the run that were shown, or occurred before this window followed it
};

}  // namespace accrue::ui
