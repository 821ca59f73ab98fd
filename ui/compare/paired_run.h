// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QPointer>

#include "accrue/run/preflight/preflight.h"
#include "kit/job_runner.h"
#include "series/run_series.h"

namespace accrue::ui {

class CompanionRun;
class MessageBar;
class PairGuide;
class PreflightRunner;
class RunControl;
class RunLibrary;
class RunQueue;
class RunsPanel;
class SpecFiles;

/// Training of the set-up as the partner of the focused run: same seed, same order of samples, at most one key changed.
/// So the difference of the two losses is the effect of that key, and exactly 0 without a change. The focused run is
/// used as recorded, or both are trained from their start at the same time.
class PairedRun : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    RunControl* control;
    CompanionRun* companion;
    RunQueue* queue;
    PreflightRunner* preflight;
    RunLibrary* library;
    RunsPanel* runs;
    SpecFiles* files;
    PairGuide* guide;
    MessageBar* bar;
  };
  PairedRun(const Parts& parts, QObject* parent);
  /// Uses the current form, which must hold valid values.
  void start();
  /// Trains both from their start: at the same time on shared cores, or, if these are too few, one after another.
  void startTogether();

 private:
  struct Plans {
    Preflight first, second;
    std::optional<std::int64_t> threads;  ///< of each rank; empty: one after another
    std::vector<PluginRecord> libraries;  ///< of the first
  };
  void check(bool together);
  void startChecked();
  bool isOneChange(const RunSpec& second);
  void planTogether(const RunPlan& second);
  void begin(const Plans& plans);
  void beginInTurn(const Plans& plans);
  void takeBegun(RunSeries* run);
  void sayStillTraining();
  void sayCompanionEnded(const RunSeries* run);

  Parts parts_;
  QPointer<RunSeries> first_;  ///< whose partner is being checked, or begins
  bool checking_ = false;
  bool together_ = false;
  bool first_begins_ = false;  ///< of two runs that train one after another
  JobRunner jobs_;
};

}  // namespace accrue::ui
