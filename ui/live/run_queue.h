// SPDX-License-Identifier: GPL-3.0-or-later
// RunQueue: runs one plan after another; runs can be added, moved and removed until they begin. A failed run does not
// stop the queue. A run that the user stops does, because a user who stops one of five seldom wants the next; the queue
// can then be continued.
#pragma once

#include <QObject>
#include <QString>
#include <cstddef>
#include <vector>

#include "accrue/run/plan/run_plan.h"
#include "document/spec_document.h"

namespace accrue::ui {

class RunControl;
class RunSeries;

enum class QueuedState { waiting, running, finished, failed, stopped, left_out };

struct QueuedRun {
  RunPlan plan;
  QString label;  ///< name in messages, e.g. "llm"; see RunQueue::labelOf()
  QueuedState state = QueuedState::waiting;
  RunSeries* run = nullptr;  ///< set once it has begun; owned by the library
  SetUp asked = {};          ///< the set-up when it was queued: later edits do not affect the run
};

/// Thread: GUI. Starts through the RunControl, so a queued run is an ordinary run.
class RunQueue : public QObject {
  Q_OBJECT

 public:
  explicit RunQueue(RunControl* control, QObject* parent = nullptr);

  /// Replaces the queue and starts its first run. Returns false and changes nothing while a run is live.
  bool start(std::vector<QueuedRun> runs);
  /// Adds a run at the end. It begins when all before it, and any current training, have ended.
  void add(QueuedRun run);
  /// Moves a run that has not begun up (-1) or down (1) among those that have not begun. Returns false if it cannot.
  bool move(std::size_t index, int by);
  /// Removes a run that has not begun.
  bool remove(std::size_t index);
  /// Drops the runs that have not begun. The current run continues.
  void cancel();
  /// Queues the dropped runs again, once the queue has ended.
  void goOn();
  bool isActive() const { return active_; }
  /// Whether start() begins at once: no queue trains, and no run does or is checked.
  bool isFree() const;
  /// Number of runs that have not begun and still will.
  std::size_t waiting() const;
  const std::vector<QueuedRun>& runs() const { return runs_; }
  /// "Run 2 of 5: llm is training"; the results once the queue has ended.
  QString sentence() const;
  /// The run's label, with the difference if several have it: "Demo, N = 4, seed = 2".
  QString labelOf(std::size_t index) const;

 Q_SIGNALS:
  void changed();
  /// All runs have ended or were dropped.
  void finished();

 private:
  void startNext();
  void startWaiting();
  bool waits(std::size_t index) const;
  void takeBegun(RunSeries* run);
  void takeEnd(RunSeries* run, int exit_status);
  void leaveOutTheRest();
  std::size_t count(QueuedState state) const;
  /// Sentence about the end of a queue with one run.
  QString sentenceOfOne(const QueuedRun& run) const;
  /// Number and names: "2 (llm; accrue)".
  QString countedNames(QueuedState state) const;

  RunControl* control_;
  std::vector<QueuedRun> runs_;
  std::size_t at_ = 0;  ///< the current run, or the next
  bool active_ = false;
};

}  // namespace accrue::ui
