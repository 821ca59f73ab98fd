// SPDX-License-Identifier: GPL-3.0-or-later
// RunQueue: runs one plan after another; runs can be added, moved and taken out until they begin. A run that fails does
// not stop the queue; a run that the user stops does, because a user who stops one of five seldom wants the next. Who
// does can let it go on.
#pragma once

#include <QObject>
#include <QString>
#include <cstddef>
#include <vector>

#include "accrue/run/run_plan.h"
#include "setup/spec_document.h"

namespace accrue::ui {

class RunControl;
class RunSeries;

enum class QueuedState { waiting, running, finished, failed, stopped, left_out };

struct QueuedRun {
  RunPlan plan;
  QString label;  ///< what messages call it, e.g. "llm"; see RunQueue::labelOf()
  QueuedState state = QueuedState::waiting;
  RunSeries* run = nullptr;  ///< once it has begun; owned by the library
  SetUp asked = {};          ///< the set-up as it was queued: later edits of it are no part of the run
};

/// Thread: GUI. Starts through the RunControl, so that a queued run is an ordinary run.
class RunQueue : public QObject {
  Q_OBJECT

 public:
  explicit RunQueue(RunControl* control, QObject* parent = nullptr);

  /// Replaces the queue and starts its first run. Returns false and changes nothing while a run is live.
  bool start(std::vector<QueuedRun> runs);
  /// Adds a run behind the others. It begins when all before it have ended, and whatever trains now.
  void add(QueuedRun run);
  /// Moves a run that has not begun up (-1) or down (1) among those that have not begun. False if it cannot.
  bool move(std::size_t index, int by);
  /// Takes out a run that has not begun.
  bool remove(std::size_t index);
  /// Leaves out the runs that have not begun. The current run continues.
  void cancel();
  /// Takes the runs that were left out into the queue again, once it has ended.
  void goOn();
  bool isActive() const { return active_; }
  /// How many have not begun and still will.
  std::size_t waiting() const;
  const std::vector<QueuedRun>& runs() const { return runs_; }
  /// "Run 2 of 5: llm is training"; the results once the queue has ended.
  QString sentence() const;
  /// The run's label, with what differs where several have it: "Demo, N = 4, seed = 2".
  QString labelOf(std::size_t index) const;

 Q_SIGNALS:
  void changed();
  /// All have ended or been left out.
  void finished();

 private:
  void startNext();
  void startWaiting();
  bool waits(std::size_t index) const;
  void takeBegun(RunSeries* run);
  void takeEnd(RunSeries* run, int exit_status);
  void leaveOutTheRest();
  std::size_t count(QueuedState state) const;
  /// How the only run of a queue has ended.
  QString sentenceOfOne(const QueuedRun& run) const;
  /// "2 (llm; accrue)": how many, and which.
  QString countedNames(QueuedState state) const;

  RunControl* control_;
  std::vector<QueuedRun> runs_;
  std::size_t at_ = 0;  ///< the current run, or the next
  bool active_ = false;
};

}  // namespace accrue::ui
