// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <functional>
#include <optional>
#include <vector>

#include "accrue/run/plan/run_plan.h"

namespace accrue::ui {

class MessageBar;
class PlanFollower;
class RunQueue;
class SpecDocument;

/// One way to run a spec.
struct RunWay {
  QString label;  ///< its run's name in messages
  QString name;   ///< its name in a refusal
  std::optional<RunPlan> plan;
  QString refusal;  ///< reason if there is no plan
};

/// One spec in several ways, as a queue of ordinary runs. Starts them once the plans belong to the current document,
/// and shows the queue's progress and what was dropped. Thread: GUI.
class ComparedRuns : public QObject {
  Q_OBJECT

 public:
  /// Returns the ways of the newest plans; none while the data cannot be read.
  using Ways = std::function<std::vector<RunWay>()>;

  ComparedRuns(SpecDocument* document, PlanFollower* plans, Ways ways, RunQueue* queue, MessageBar* bar,
               QObject* parent);
  /// Begins once the plans belong to the current document.
  void start();
  /// Does the same, with other ways.
  void startWith(Ways ways);

 Q_SIGNALS:
  /// The first run is about to begin.
  void aboutToBegin();
  /// Nothing could be queued; the message bar shows why.
  void refused();
  /// They have ended, and those that began can be drawn over each other.
  void ended();

 private:
  void startCompared();
  void showProgress();
  void showEnd();
  void post();

  SpecDocument* document_;
  PlanFollower* plans_;
  Ways ways_;
  RunQueue* queue_;
  MessageBar* bar_;
  QStringList left_out_;
  bool asked_ = false;
  bool queued_ = false;  ///< the queue's runs belong to this object
};

}  // namespace accrue::ui
