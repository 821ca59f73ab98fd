// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_control.h"

#include <utility>
#include <variant>

#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/megatron/plugin_facts.h"
#include "accrue/run/preflight/run_order.h"
#include "document/library_probe.h"
#include "document/preflight_runner.h"
#include "document/spec_document.h"

namespace accrue::ui {

namespace {

bool changesSteps(const RunSpec& spec) {
  return why_steps_stay(spec).empty();
}

}  // namespace

RunControl::RunControl(const BridgeOptions& options, SpecDocument* document, PreflightRunner* preflight,
                       RunLibrary* library, QObject* parent)
    : HostedRun(parent), document_(document), preflight_(preflight), library_(library), bridge_(options) {
  preflight_->setRankProgram(rankProgram(options));
  connect(this, &RunControl::stateChanged, this, &HostedRun::hostingChanged);
  connect(&bridge_, &EngineBridge::batch, this, &RunControl::takeBatch);
  connect(&bridge_, &EngineBridge::stateChanged, this, &RunControl::takeState);
  connect(preflight_, &PreflightRunner::finished, this, [this] {
    if (checking_ && !comparing_ && !copying_ && branch_pending_.isEmpty() && preflight_->isCurrent()) startChecked();
  });
  connect(document_, &SpecDocument::changed, this, &RunControl::changed);
  connect(library_, &RunLibrary::loaded, this, [this](RunSeries* run) {
    if (library_->find(resume_pending_) == run && !checking_ && !isLive()) resumeLoaded(run->folder());
  });
}

RunControl::~RunControl() = default;

RunState RunControl::state() const {
  if (checking_) return RunState::preflight;
  if (!run_) return RunState::idle;
  const RunState state = bridge_.state();
  return stop_asked_ && is_live(state) && state != RunState::stopping ? RunState::stopping : state;
}

Hosting RunControl::hosting() const {
  if (copying_) return Hosting::begins;
  if (!isLive() || attached()) return Hosting::none;
  return ended_by_user_ || state() == RunState::stopping ? Hosting::ends : Hosting::trains;
}

const RankTracker& RunControl::ranks() const {
  static const RankTracker none;
  return run_ ? run_->tracker() : none;
}

RunActions RunControl::actions() const {
  RunActions actions = enabledActions(state());
  const bool resumable = run_ && (state() == RunState::failed || run_->outcome().outcome == QLatin1String("stopped"));
  if (!resumable) actions.erase(RunAction::resume);
  if (run_ && run_->spec() && !changesSteps(*run_->spec())) actions.erase(RunAction::setSteps);
  if (steps_.isStarting()) actions.insert(RunAction::step);
  if (isLive() && !controls()) {
    using enum RunAction;
    for (const RunAction command : {pause, proceed, step, stop, kill, checkpoint, stopUnsaved, setSteps})
      actions.erase(command);
  }
  return actions;
}

std::optional<int> RunControl::editsNotRun() const {
  if (!last_) return std::nullopt;
  return static_cast<int>(diff_specs(last_->spec, document_->spec()).size());
}

bool RunControl::lastRanAnother() const {
  return last_ && last_->document != document_->opened();
}

void RunControl::startPaused() {
  if (checking_ || isLive()) return;
  start();
  starts_paused_ = true;
}

std::vector<SpecDifference> RunControl::editsWaiting() const {
  if (!last_ || !isLive()) return {};
  return diff_specs(last_->spec, document_->spec());
}

void RunControl::start() {
  if (checking_ || isLive()) return;
  branch_pending_.clear();
  branch_from_.reset();
  beginCheck();
  preflight_->refresh();
}

void RunControl::branch(const QString& folder) {
  if (checking_ || isLive()) return;
  branch_pending_ = folder;
  beginCheck();
  // This reads the run's whole record.
  jobs_.run(
      [dir = std::filesystem::path(folder.toStdString())] {
        BranchFrom from{read_branch_point(dir), {}};
        if (from.point) from.unchanged = check_unchanged(from.point->plugins);
        return from;
      },
      [this, folder](BranchFrom from) { takeBranchPoint(folder, std::move(from)); });
}

void RunControl::takeBranchPoint(const QString& folder, BranchFrom from) {
  if (!checking_ || branch_pending_ != folder) return;  // stopped meanwhile
  branch_pending_.clear();
  if (!from.point) {
    endCheck();
    Q_EMIT commandFailed(from.point.error());
    return;
  }
  if (preflight_->chosenLibraries().empty()) {
    if (!from.unchanged) {
      endCheck();
      Q_EMIT commandFailed(from.unchanged.error());
      Q_EMIT librariesMissed(folder, from.point->plugins, from.unchanged.error(), GoOn::branch);
      return;
    }
    preflight_->chooseLibraries(from.point->plugins);
  }
  branch_from_ = std::move(*from.point);
  preflight_->refresh();
}

void RunControl::beginCheck() {
  ++check_;
  checking_ = true;
  comparing_ = false;
  starts_paused_ = false;
  resume_pending_.clear();
  Q_EMIT stateChanged(state());
  Q_EMIT changed();
}

void RunControl::endCheck() {
  ++check_;
  steps_.clear();
  checking_ = comparing_ = false;
  Q_EMIT stateChanged(state());
  Q_EMIT changed();
}

void RunControl::startChecked() {
  const Preflight& checked = preflight_->result();
  if (!checked.plan || (!branch_from_ && has_errors(checked.findings))) {
    const std::vector<Finding> findings = checked.findings;
    endCheck();
    Q_EMIT refused(findings);
    return;
  }
  const RunPlan plan = *checked.plan;
  if (branch_from_) {
    compareBranch(plan);
    return;
  }
  checking_ = false;
  const SetUp asked = setUp();
  beginStarted(bridge_.start({.plan = plan, .libraries = asked.libraries, .paused = starts_paused_}), plan, asked);
}

/// This may read its data.
void RunControl::compareBranch(const RunPlan& plan) {
  comparing_ = true;
  jobs_.run([from = *branch_from_, plan] { return check_branch(from, plan); },
            [this, plan, asked = branchSetUp(), check = check_](const std::vector<Finding>& findings) {
              if (check != check_) return;  // stopped meanwhile
              comparing_ = false;
              if (has_errors(findings)) {
                endCheck();
                Q_EMIT refused(findings);
                return;
              }
              startBranch(plan, asked);
              if (!findings.empty()) Q_EMIT warned(findings);
            });
}

/// Its checkpoint may be large: the window stays responsive while it is copied.
void RunControl::startBranch(const RunPlan& plan, const SetUp& asked) {
  checking_ = copying_ = true;
  jobs_.run(
      [options = bridge_.options(), from = *branch_from_,
       run = RunStart{.plan = plan, .libraries = asked.libraries}]() mutable {
        return EngineBridge::startBranch(options, from, std::move(run));
      },
      [this, plan, asked](BranchStart branch) {
        checking_ = copying_ = false;
        const bool stopped = std::exchange(kill_when_copied_, false);
        if (beginStarted(bridge_.follow(std::move(branch)), plan, asked) && stopped) kill();
      });
}

bool RunControl::startPlan(const RunPlan& plan, const SetUp& asked) {
  if (checking_ || isLive()) return false;
  return beginStarted(bridge_.start({.plan = plan, .libraries = asked.libraries}), plan, asked);
}

SetUp RunControl::setUp() const {
  return {document_->spec(), document_->opened(), librariesOf(document_->spec(), preflight_->libraries())};
}

/// Libraries are identified by their contents, at any place.
SetUp RunControl::branchSetUp() const {
  SetUp asked = setUp();
  if (!asked.libraries.empty()) return asked;
  asked.libraries = branch_from_->plugins;
  for (PluginRecord& kept : asked.libraries)
    for (const PluginRecord& chosen : preflight_->chosenLibraries())
      if (chosen.sha256 == kept.sha256) kept.file = chosen.file;
  return asked;
}

bool RunControl::beginStarted(const Result<std::filesystem::path>& started, const RunPlan& plan, const SetUp& asked) {
  if (!started) {
    steps_.clear();
    Q_EMIT stateChanged(state());
    Q_EMIT changed();
    Q_EMIT commandFailed(started.error());
    return false;
  }
  last_ = asked;
  begin(*started, plan, RunLibrary::Past::forget);
  return true;
}

void RunControl::resume(const QString& folder, const std::vector<std::string>& libraries) {
  if (checking_ || isLive()) return;
  moved_ = libraries;
  RunSeries* known = library_->find(folder);
  if (known && library_->isLoaded(known)) {
    resumeLoaded(folder);
    return;
  }
  // The earlier measurements come first, then those of the resumed ranks.
  resume_pending_ = folder;
  library_->open(folder);
}

void RunControl::resumeLoaded(const QString& folder) {
  const RunSeries* run = library_->find(folder);
  if (!moved_.empty() || !run->spec() || !namesLibraries(*run->spec())) return resumeWithLibraries(folder);
  // A run whose library is missing would fail at its start; here the user can still locate it.
  resume_pending_ = folder;
  struct Recorded {
    std::vector<PluginRecord> libraries;
    Result<void> unchanged;
  };
  jobs_.run(
      [plan = std::filesystem::path(folder.toStdString()) / "plan.json"] {
        Recorded recorded;
        if (auto order = read_run_order(plan)) recorded.libraries = std::move(order->plugins);
        recorded.unchanged = check_unchanged(recorded.libraries);
        return recorded;
      },
      [this, folder](const Recorded& recorded) {
        if (resume_pending_ != folder || checking_ || isLive()) return;
        if (recorded.unchanged) return resumeWithLibraries(folder);
        resume_pending_.clear();
        Q_EMIT commandFailed(recorded.unchanged.error());
        Q_EMIT librariesMissed(folder, recorded.libraries, recorded.unchanged.error(), GoOn::resume);
      });
}

void RunControl::resumeWithLibraries(const QString& folder) {
  resume_pending_.clear();
  const auto resumed = bridge_.resume(folder.toStdString(), moved_);
  if (!resumed) {
    Q_EMIT commandFailed(resumed.error());
    return;
  }
  forgetOthersSpec(folder);
  begin(*resumed, library_->find(folder)->plan(), RunLibrary::Past::keep);
  Q_EMIT joined(run_);
}

void RunControl::attach(const QString& folder) {
  if (checking_ || isLive()) return;
  const std::filesystem::path dir = folder.toStdString();
  const auto attached = bridge_.attach(dir);
  if (!attached) {
    Q_EMIT commandFailed(attached.error());
    return;
  }
  RunSeries* known = library_->find(folder);
  forgetOthersSpec(folder);
  begin(dir, known ? known->plan() : std::nullopt, RunLibrary::Past::forget);
  Q_EMIT joined(run_);
}

/// The set-up of a joined run is not known here.
void RunControl::forgetOthersSpec(const QString& folder) {
  if (!run_ || run_->folder() != folder) last_.reset();
}

void RunControl::begin(const std::filesystem::path& dir, const std::optional<RunPlan>& plan, RunLibrary::Past past) {
  run_ = library_->addLive(QString::fromStdString(dir.string()), plan, past);
  held_ = {};
  if (!steps_.isStarting()) steps_.clear();
  dropped_before_ = run_->tracesNotDrawn();
  stop_asked_ = false;
  ended_by_user_ = false;
  killed_ = false;
  over_told_ = false;
  exit_status_ = 0;
  Q_EMIT runBegun(run_);
  Q_EMIT stateChanged(state());
  Q_EMIT changed();
}

void RunControl::togglePause() {
  steps_.clear();
  const RunActions possible = actions();
  if (possible.contains(RunAction::proceed))
    bridge_.proceed();
  else if (possible.contains(RunAction::pause))
    bridge_.pause();
}

void RunControl::stepPhase() {
  step(&EngineBridge::stepPhase);
}

void RunControl::stepMicro() {
  step(&EngineBridge::stepMicro);
}

void RunControl::stepUpdate() {
  step(&EngineBridge::stepUpdate);
}

void RunControl::step(void (EngineBridge::*unit)()) {
  if (steps_.isUnderWay()) {
    steps_.add(unit);
  } else if (state() == RunState::paused) {
    steps_.begin();
    (bridge_.*unit)();
  } else if (actions().contains(RunAction::pause)) {
    bridge_.pause();
  } else {
    startPaused();
    if (!checking_ || !starts_paused_) return;
    steps_.beginStart();
    Q_EMIT stateChanged(state());  // more steps can be requested
  }
}

void RunControl::stop() {
  if (copying_) {
    kill_when_copied_ = true;
    return;
  }
  if (checking_) return endCheck();
  if (!isLive() || !controls()) return;
  if (state() == RunState::stopping) {
    kill();
    return;
  }
  bridge_.checkpointAndStop();  // the engine knows whether there is anything to save; the drawn state is older
  showStopping();
}

void RunControl::stopUnsaved() {
  if (!actions().contains(RunAction::stopUnsaved)) return;
  bridge_.stop();
  showStopping();
}

void RunControl::saveAndEnd() {
  if (hosting() == Hosting::begins || hosting() == Hosting::trains) stop();
}

void RunControl::endUnsaved() {
  if (hosting() == Hosting::begins) return stop();
  if (hosting() == Hosting::none) return;
  bridge_.stop();
  showStopping();
}

/// At once: the next press means kill, even before the engine's answer has been drawn.
void RunControl::showStopping() {
  steps_.clear();
  ended_by_user_ = true;
  stop_asked_ = true;
  Q_EMIT stateChanged(state());
  Q_EMIT changed();
}

void RunControl::kill() {
  if (!isLive()) return;
  ended_by_user_ = true;
  killed_ = true;
  bridge_.kill();
}

void RunControl::checkpoint() {
  if (actions().contains(RunAction::checkpoint)) bridge_.checkpoint();
}

void RunControl::setSteps(std::int64_t steps) {
  if (actions().contains(RunAction::setSteps)) bridge_.setSteps(steps);
}

void RunControl::takeBatch(const EventBatch& events) {
  if (!run_) return;
  library_->append(run_, events);
  run_->setTracesNotDrawn(dropped_before_ + bridge_.dropped());
  held_.take(events);
  for (const RunEvent& event : events)
    if (const auto* finished = std::get_if<RunFinished>(&event.body)) exit_status_ = finished->exit_status;
  if (const auto step = steps_.take(events)) (bridge_.*(*step))();
  Q_EMIT changed();
}

void RunControl::takeState() {
  if (!run_) return;
  Q_EMIT stateChanged(state());
  Q_EMIT changed();
  if (!is_over(bridge_.state()) || over_told_) return;
  over_told_ = true;
  stop_asked_ = false;
  if (bridge_.state() == RunState::failed && exit_status_ == 0) exit_status_ = exit_status(ErrorCode::peer_lost);
  Q_EMIT ended(run_, exit_status_);
}

}  // namespace accrue::ui
