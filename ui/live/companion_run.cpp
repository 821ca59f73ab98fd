// SPDX-License-Identifier: GPL-3.0-or-later
#include "companion_run.h"

#include <utility>

#include "run_control.h"
#include "runs/run_library.h"

namespace accrue::ui {

namespace {

/// No command of the menu reaches this run, so it must not pause on non-finite values and wait for one.
BridgeOptions withoutQuestions(BridgeOptions options) {
  options.interactive = false;
  return options;
}

}  // namespace

CompanionRun::CompanionRun(RunControl* partner, RunLibrary* library, QObject* parent)
    : HostedRun(parent), partner_(partner), library_(library), bridge_(withoutQuestions(partner->bridgeOptions())) {
  connect(&bridge_, &EngineBridge::batch, this, &CompanionRun::takeBatch);
  connect(&bridge_, &EngineBridge::stateChanged, this, &CompanionRun::takeState);
  connect(partner_, &RunControl::runBegun, this, [this](RunSeries* run) {
    if (isLive() && !beside_) beside_ = run;
  });
  connect(partner_, &RunControl::stateChanged, this, &CompanionRun::followPartner);
}

Result<RunSeries*> CompanionRun::start(const RunPlan& plan, std::vector<PluginRecord> libraries) {
  if (isLive())
    return fail(ErrorCode::config, tr("The other run of the last pair still trains").toStdString(),
                run_->name().toStdString(), tr("Stop it, or wait for its end").toStdString());
  const auto started = bridge_.start({.plan = plan, .libraries = std::move(libraries)});
  if (!started) return tl::make_unexpected(started.error());
  run_ = library_->addLive(QString::fromStdString(started->string()), plan, RunLibrary::Past::forget);
  beside_ = nullptr;
  held_ = end_asked_ = killed_ = over_told_ = false;
  Q_EMIT hostingChanged();
  return run_;
}

Hosting CompanionRun::hosting() const {
  if (!run_ || !is_live(bridge_.state())) return Hosting::none;
  return end_asked_ || bridge_.state() == RunState::stopping ? Hosting::ends : Hosting::trains;
}

void CompanionRun::saveAndEnd() {
  if (hosting() != Hosting::trains) return;
  bridge_.checkpointAndStop();
  noteEndAsked();
}

void CompanionRun::endUnsaved() {
  if (!isLive()) return;
  bridge_.stop();
  noteEndAsked();
}

void CompanionRun::kill() {
  if (!isLive()) return;
  killed_ = true;
  bridge_.kill();
  noteEndAsked();
}

void CompanionRun::noteEndAsked() {
  end_asked_ = true;
  Q_EMIT hostingChanged();
}

/// Holds, continues and ends with the partner at the user's commands. A partner that ends by itself ends nothing else,
/// and holds nothing any longer.
void CompanionRun::followPartner() {
  if (!isLive() || partner_->run() != beside_) return;
  const RunState state = partner_->state();
  const bool hold = state == RunState::paused;
  const bool release = state == RunState::running || (is_over(state) && !partner_->endedByUser());
  if (hold != held_ && (hold || release)) {
    held_ = hold;
    if (hold)
      bridge_.pause();
    else
      bridge_.proceed();
  }
  if (partner_->endedByUser()) saveAndEnd();
}

void CompanionRun::takeBatch(const EventBatch& events) {
  library_->append(run_, events);
  run_->setTracesNotDrawn(bridge_.dropped());
}

void CompanionRun::takeState() {
  Q_EMIT hostingChanged();
  if (!is_over(bridge_.state()) || over_told_) return;
  over_told_ = true;
  Q_EMIT ended(run_);
}

}  // namespace accrue::ui
