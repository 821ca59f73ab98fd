// SPDX-License-Identifier: GPL-3.0-or-later
// CompanionRun: a run that trains here beside that of RunControl, as the first of a pair. It is an ordinary run of the
// library. No command of the Run menu reaches it, but it is held, continued and ended with its partner.
#pragma once

#include "accrue/run/base/result.h"
#include "hosted_run.h"
#include "series/engine_bridge.h"

namespace accrue::ui {

class RunControl;
class RunLibrary;
class RunSeries;

/// Both runs of a pair start at the same moment with the same threads per rank, and the system's scheduler gives them
/// equal shares. They do not wait for each other at every update: two ways seldom take equally long for one. Each
/// would train at the pace of the slower and idle between updates; their measured times would mean nothing. Their
/// difference is drawn as far as both have results. For the same reason a step of a held partner lets this run continue
/// for the duration of the step.
/// Thread: GUI.
class CompanionRun : public HostedRun {
  Q_OBJECT

 public:
  CompanionRun(RunControl* partner, RunLibrary* library, QObject* parent = nullptr);

  /// `libraries`: those that its ranks load. Fails while one is live.
  Result<RunSeries*> start(const RunPlan& plan, std::vector<PluginRecord> libraries = {});
  bool isLive() const { return hosting() != Hosting::none; }
  RunSeries* run() const override { return run_; }
  Hosting hosting() const override;
  /// Safe to call twice: the partner's end and the window's end both do.
  void saveAndEnd() override;
  void endUnsaved() override;
  void kill() override;
  bool wasKilled() const override { return killed_; }

 Q_SIGNALS:
  void ended(accrue::ui::RunSeries* run);

 private:
  void takeBatch(const EventBatch& events);
  void takeState();
  void followPartner();
  void noteEndAsked();

  RunControl* partner_;
  RunLibrary* library_;
  EngineBridge bridge_;
  RunSeries* run_ = nullptr;
  RunSeries* beside_ = nullptr;  ///< the partner's run; only compared
  bool held_ = false;            ///< together with the partner
  bool end_asked_ = false;
  bool killed_ = false;
  bool over_told_ = true;
};

}  // namespace accrue::ui
