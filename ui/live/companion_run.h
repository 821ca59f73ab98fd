// SPDX-License-Identifier: GPL-3.0-or-later
// CompanionRun: a run that trains here beside the one of RunControl, as the first of a pair. It is an ordinary run of
// the library; no command of the Run menu reaches it, but it is held, continued and ended with its partner.
#pragma once

#include "accrue/run/result.h"
#include "hosted_run.h"
#include "series/engine_bridge.h"

namespace accrue::ui {

class RunControl;
class RunLibrary;
class RunSeries;

/// Both of a pair are started at the same moment with the same threads per rank, and are left to the scheduler of the
/// system, which gives them equal shares. They are not made to wait for each other at every update: two ways of a pair
/// seldom take equally long for one, so that each would train at the pace of the slower and stand still between
/// updates, and their measured times would mean nothing. What is drawn of their difference reaches as far as both are.
/// For the same reason a step of a held partner lets it go on for as long as that step takes.
/// Thread: GUI.
class CompanionRun : public HostedRun {
  Q_OBJECT

 public:
  CompanionRun(RunControl* partner, RunLibrary* library, QObject* parent = nullptr);

  /// `libraries`: what its ranks load. Fails while one is live.
  Result<RunSeries*> start(const RunPlan& plan, std::vector<PluginRecord> libraries = {});
  bool isLive() const { return hosting() != Hosting::none; }
  RunSeries* run() const override { return run_; }
  Hosting hosting() const override;
  /// Once is enough: the partner's end and the window's ask for it independently of each other.
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
  RunSeries* beside_ = nullptr;  ///< the partner's run; compared only
  bool held_ = false;            ///< with the partner
  bool end_asked_ = false;
  bool killed_ = false;
  bool over_told_ = true;
};

}  // namespace accrue::ui
