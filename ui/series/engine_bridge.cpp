// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine_bridge.h"

#include <utility>
#include <variant>

#include "accrue/run/host/engine_host.h"

namespace accrue::ui {

namespace {

std::unique_ptr<EngineHost> makeHost(const BridgeOptions& options) {
  EngineHostOptions host;
  host.rank_program = options.rank_program;
  host.interactive = options.interactive;
  host.stop_grace = options.stop_grace;
  return std::make_unique<EngineHost>(std::move(host));
}

RunRequest requestOf(RunStart run) {
  return {std::move(run.plan), std::move(run.run_dir), run.paused, std::move(run.libraries)};
}

}  // namespace

std::string rankProgram(const BridgeOptions& options) {
  return options.rank_program.empty() ? default_rank_program() : options.rank_program;
}

EngineBridge::EngineBridge(BridgeOptions options, QObject* parent)
    : QObject(parent),
      options_(std::move(options)),
      pump_([this] { return host_ ? host_->events().drain() : EventBatch{}; }, this) {
  connect(&pump_, &EventPump::batch, this, &EngineBridge::takeBatch);
}

EngineBridge::~EngineBridge() {
  pump_.stop();
}

Result<std::filesystem::path> EngineBridge::start(RunStart run) {
  // A new host for every run, so that events still queued in the former one are not taken for the new run's.
  auto host = makeHost(options_);
  auto started = host->start(requestOf(std::move(run)));
  if (!started) return started;
  host_ = std::move(host);
  beginFollowing();
  return started;
}

Result<std::filesystem::path> EngineBridge::resume(const std::filesystem::path& run_dir,
                                                   const std::vector<std::string>& libraries) {
  auto host = makeHost(options_);
  auto started = host->resume(run_dir, libraries);
  if (!started) return started;
  host_ = std::move(host);
  beginFollowing();
  return started;
}

BranchStart::BranchStart(std::unique_ptr<EngineHost> made, Result<std::filesystem::path> dir)
    : host(std::move(made)), folder(std::move(dir)) {}
BranchStart::BranchStart(BranchStart&&) noexcept = default;
BranchStart::~BranchStart() = default;

BranchStart EngineBridge::startBranch(const BridgeOptions& options, const BranchPoint& from, RunStart run) {
  auto host = makeHost(options);
  auto folder = host->branch(from, requestOf(std::move(run)));
  return {std::move(host), std::move(folder)};
}

Result<std::filesystem::path> EngineBridge::follow(BranchStart branch) {
  if (!branch.folder) return branch.folder;
  host_ = std::move(branch.host);
  beginFollowing();
  return branch.folder;
}

Result<void> EngineBridge::attach(const std::filesystem::path& run_dir) {
  auto host = makeHost(options_);
  auto attached = host->attach(run_dir);
  if (!attached) return attached;
  host_ = std::move(host);
  beginFollowing();
  return attached;
}

void EngineBridge::pause() {
  if (host_) host_->pause();
}
void EngineBridge::proceed() {
  if (host_) host_->proceed();
}
void EngineBridge::stepPhase() {
  if (host_) host_->step(StepUnit::phase);
}
void EngineBridge::stepMicro() {
  if (host_) host_->step(StepUnit::micro_step);
}
void EngineBridge::stepUpdate() {
  if (host_) host_->step(StepUnit::update);
}
void EngineBridge::stop() {
  if (host_) host_->stop();
}
void EngineBridge::kill() {
  if (host_) host_->kill();
}
void EngineBridge::checkpoint() {
  if (host_) host_->checkpoint();
}
void EngineBridge::setSteps(std::int64_t steps) {
  if (host_) host_->set_steps(steps);
}

void EngineBridge::checkpointAndStop() {
  if (host_) host_->checkpoint_and_stop();
}

bool EngineBridge::attached() const {
  return host_ && host_->attached();
}

std::int64_t EngineBridge::dropped() const {
  return host_ ? static_cast<std::int64_t>(host_->events().dropped()) : 0;
}

bool EngineBridge::controls() const {
  return !host_ || host_->controls();
}

void EngineBridge::beginFollowing() {
  state_ = RunState::starting;
  detail_.clear();
  pump_.start();
  Q_EMIT stateChanged(state_, detail_);
}

void EngineBridge::takeBatch(const EventBatch& events) {
  Q_EMIT batch(events);
  const RunState before = state_;
  const QString detail_before = detail_;
  for (const RunEvent& event : events) {
    const auto* changed = std::get_if<StateChanged>(&event.body);
    if (!changed) continue;
    if (const auto state = run_state_from(changed->state)) state_ = *state;
    detail_ = QString::fromStdString(changed->detail);
  }
  if (state_ != before || detail_ != detail_before) Q_EMIT stateChanged(state_, detail_);
}

}  // namespace accrue::ui
