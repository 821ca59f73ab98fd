// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QStringList>
#include <QTimer>
#include <chrono>
#include <vector>

#include "hosted_run.h"
#include "run_dialogs.h"
#include "series/engine_bridge.h"

class QSettings;
class QWidget;

namespace accrue::ui {

class RunQueue;
class RunSeries;

/// Guard that lets the window close only when no rank of a hosted run is left. Asks what to do with the runs, and waits
/// while the event loop runs. After a deadline it kills runs that were to stop now, and asks again about those that are
/// saving.
///
/// A question whose runs have ended is withdrawn, and the window closes.
///
/// Effect of closing on each run of the window:
///
///   hosting | keep running          | checkpoint and stop | stop now
///   --------|-----------------------|---------------------|--------------
///   none    | nothing               | nothing             | nothing
///   begins  | ends once it begins   | as at the left      | as at the left
///   trains  | saved, then continued | saved               | ends unsaved
///   ends    | waited for            | waited for          | ends unsaved
///
/// Continued: from its checkpoint, in a separate process. If a run fails while the others are to continue, they do. The
/// window stays and shows the failure, unless the user has ended the wait. A killed run does not continue.
class CloseGuard : public QObject {
  Q_OBJECT

 public:
  /// `options`: for continued runs.
  CloseGuard(BridgeOptions options, RunDialogs* dialogs, QSettings* settings, QWidget* window);

  /// Sets the places whose runs are asked about and waited for.
  void watch(std::vector<HostedRun*> places);
  /// Whether `run` is the last run of one of these places.
  bool have(const RunSeries* run) const;
  /// Returns true if the window may close now; false if it stays open, because the user cancelled or until
  /// readyToClose().
  bool mayClose();
  bool isWaiting() const { return waiting_; }
  /// Ends the session without questions: closing saves and ends the runs, and kills those that have not ended after 20
  /// s.
  void endSession();
  /// Ends the runs that the window waits for, even while they save.
  void stopNow();
  bool remembersAnswer() const;
  /// Makes closing during a run ask again.
  void forgetAnswer();
  /// Sets the queue, so that the window can say how many of its runs wait. They will not begin once it has closed.
  void setQueue(const RunQueue* queue) { queue_ = queue; }
  void setDeadline(std::chrono::milliseconds deadline) { usual_deadline_ = deadline; }

 Q_SIGNALS:
  /// The window waits for the runs to end.
  void waitingFor(const QString& sentence);
  void readyToClose();
  /// The deadline has passed and the ranks are still saving; the wait continues.
  void stillSaving(const QString& sentence);
  /// The window stays open; `why` is empty if the message about a run's end explains it.
  void stays(const QString& why);
  void rememberedChanged();

 private:
  struct Awaited {
    HostedRun* place;
    bool goes_on;  ///< afterwards, in another process
  };
  std::size_t count(Hosting hosting) const;
  bool hosts() const;
  CloseAnswer ask();
  void carryOut();
  void startDeadline();
  void sayWaiting();
  void review();
  void letGoOn(const HostedRun& place);
  void passDeadline();
  void force();

  BridgeOptions options_;
  std::vector<HostedRun*> places_;
  const RunQueue* queue_ = nullptr;
  RunDialogs* dialogs_;
  QSettings* settings_;
  QWidget* window_;
  QTimer deadline_;
  std::chrono::milliseconds usual_deadline_ = std::chrono::seconds(30);
  CloseAnswer answer_ = CloseAnswer::cancel;
  std::vector<Awaited> awaited_;
  QStringList refusals_;  ///< why runs could not continue
  bool failed_ = false;   ///< one of the runs that were to continue failed
  bool asking_ = false;   ///< a question is open, and its runs still exist
  bool waiting_ = false;
  bool session_ends_ = false;
  bool killed_ = false;
  bool given_up_ = false;  ///< even killing had no effect
};

}  // namespace accrue::ui
