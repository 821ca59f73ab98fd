// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <functional>
#include <optional>
#include <vector>

#include "accrue/run/plan/run_plan.h"
#include "document/plan_follower.h"

namespace accrue::ui {

class MessageBar;
class PreflightRunner;
class RunQueue;
class SpecDocument;

/// One way to run a spec.
struct RunWay {
  QString label;  ///< its run's name in messages
  QString name;   ///< its name in a refusal
  std::optional<RunPlan> plan;
  QString refusal;  ///< reason if there is no plan
};

/// Returns ways to run a spec. Pure; runs in the background. The question has data.
using RunWays = std::function<std::vector<RunWay>(const PlanFollower::Question&)>;

/// The set-up in several ways.
struct Variant {
  RunWays ways;                                    ///< empty: the user does not want them any more
  const char* plot = "";                           ///< shown beside the loss while they train
  std::function<bool(const RunWay&)> wanted = {};  ///< of those with a plan; empty: all, and a refusal is shown
};

/// One spec in several ways, as a queue of ordinary runs. Starts them once the plans belong to the current document,
/// and shows the queue's progress and what was dropped. Thread: GUI.
class ComparedRuns : public QObject {
  Q_OBJECT

 public:
  ComparedRuns(SpecDocument* document, PreflightRunner* preflight, RunQueue* queue, MessageBar* bar, QObject* parent);
  /// Begins once the plans belong to the current document. Does nothing while the queue trains or plans are made.
  void start(Variant variant);
  /// Whether plans are being made.
  bool isPlanning() const { return plans_ != nullptr; }

 Q_SIGNALS:
  /// Plans are being made, or no longer.
  void planningChanged();
  /// The first run is about to begin; the plot is the variant's.
  void aboutToBegin(const QString& plot);
  /// They have ended, and those that began can be drawn over each other.
  void ended();

 private:
  void startCompared();
  void queue(const std::vector<RunWay>& ways);
  void endPlanning();
  void refuse(const QString& why, const char* id = "queue");
  void showProgress();
  void showEnd();
  void post();

  SpecDocument* document_;
  PreflightRunner* preflight_;
  RunQueue* queue_;
  MessageBar* bar_;
  Variant variant_;
  RunSpec asked_;                                      ///< the document when the variant was chosen
  PlanAnswers<std::vector<RunWay>>* plans_ = nullptr;  ///< while they are made
  QStringList left_out_;
  bool queued_ = false;  ///< the queue's runs belong to this object
};

}  // namespace accrue::ui
