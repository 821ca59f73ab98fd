// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_series.h"

#include <QFileInfo>
#include <algorithm>
#include <cmath>

#include "accrue/run/choice_names.h"
#include "accrue/run/run_store.h"
#include "accrue/run/steps_record.h"
#include "kit/no_value.h"
#include "kit/number_text.h"
#include "kit/text.h"

namespace accrue::ui {

namespace {

QString text(const std::string& utf8) {
  return QString::fromStdString(utf8);
}

/// A curve with a bug must be recognisable, in a legend as in a file.
QString bugMark(const accrue::RunSpec& spec) {
  if (spec.teaching.bug == accrue::Bug::none) return {};
  //: Follows the name of a run that was given a bug
  return RunSeries::tr(" (bug: %1)").arg(fromView(to_name(spec.teaching.bug)));
}

ClockPoint clocksOf(const accrue::Update& body, double timeOffset) {
  ClockPoint at;
  at[Clock::microStep] = static_cast<double>(body.micro_step);
  at[Clock::update] = static_cast<double>(body.update);
  at[Clock::sample] = static_cast<double>(body.samples);
  at[Clock::token] = static_cast<double>(body.tokens);
  at[Clock::epoch] = body.epoch;
  at[Clock::seconds] = body.seconds + timeOffset;
  at[Clock::computeSeconds] = body.compute_seconds;
  return at;
}

void appendParts(PartSeries& parts, const ClockPoint& at, const accrue::NamedLosses& losses, bool measured = true) {
  for (const auto& [name, value] : losses) {
    std::unique_ptr<UpdateSeries>& part = parts[text(name)];
    if (!part) part = std::make_unique<UpdateSeries>();
    part->append(at, measured ? value : noValue);
  }
}

/// The loss of a window without a label is meaningless.
bool hasLoss(const accrue::Update& body) {
  return body.outcome != accrue::StepOutcome::skipped_empty;
}

/// Recorded weights beyond this number stay in the file.
constexpr std::size_t mostWeights = 64;

}  // namespace

void UpdateSeries::append(const ClockPoint& at, double value) {
  clocks.append(at);
  values.append(value);
}

void UpdateSeries::rewindTo(double update) {
  const std::size_t kept = update > 0.0 ? clocks[Clock::update].upperBound(update) : 0;
  values.truncate(kept);
  clocks.truncate(kept);
}

RunSeries::RunSeries(QString id, int colorIndex, QObject* parent)
    : QObject(parent), id_(std::move(id)), colorIndex_(colorIndex) {}

RunSeries::~RunSeries() {
  Q_EMIT leaving();
  *outlineCancelled_ = true;
}

QString RunSeries::givenName() const {
  if (!notes_.name.isEmpty()) return notes_.name;
  if (!name_.isEmpty()) return name_;
  if (spec_) return text(accrue::run_name(*spec_, plannedSteps_)) + bugMark(*spec_);
  return folder_.isEmpty() ? id_ : QFileInfo(folder_).fileName();
}

void RunSeries::setColorIndex(int index) {
  if (index == colorIndex_) return;
  colorIndex_ = index;
  ++revision_;
  Q_EMIT changed();
}

void RunSeries::setShown(Shown shown) {
  if (shown == shown_) return;
  shown_ = shown;
  Q_EMIT shownChanged();
}

void RunSeries::setName(const QString& name) {
  if (name == name_) return;
  name_ = name;
  notes_.called.clear();
  Q_EMIT givenNameChanged();
  Q_EMIT changed();
}

void RunSeries::setDistinctName(const QString& name) {
  if (name == distinctName()) return;
  notes_.called = name;
  ++revision_;
  Q_EMIT changed();
}

void RunSeries::setNotes(const RunNotes& notes) {
  if (notes == notes_) return;
  const bool renamed = notes.name != notes_.name;
  notes_ = notes;
  ++revision_;
  if (renamed) Q_EMIT givenNameChanged();
  Q_EMIT changed();
}

void RunSeries::setFolder(const QString& folder) {
  folder_ = folder;
}

void RunSeries::takeSpec(const accrue::RunSpec& spec) {
  if (spec_ && *spec_ == spec) return;
  spec_ = spec;
  timeline_.setGrid(accrue::make_grid(spec));
  Q_EMIT specChanged();
}

void RunSeries::setTracesNotDrawn(std::int64_t count) {
  if (count == tracesNotDrawn_) return;
  tracesNotDrawn_ = count;
  ++revision_;
}

void RunSeries::setSpec(const accrue::RunSpec& spec) {
  takeSpec(spec);
  if (!plan_) join_.expectRanks(spec.parallel.data);
  Q_EMIT changed();
}

void RunSeries::setPlan(const accrue::RunPlan& plan) {
  plan_ = plan;
  plannedSteps_ = plan.window.steps;
  plannedMicroBatch_ = plan.order.micro_batch;
  takeSpec(plan.spec);
  join_.expectRanks(plan.spec.parallel.data);
  takeWindow();
  if (!hasEvents()) resetTracker();
  ++revision_;
  Q_EMIT changed();
}

void RunSeries::resetTracker() {
  tracker_ = plan_ ? RankTracker(*plan_) : RankTracker();
}

/// Computes results of the plan. It is walked in the background; a newer plan cancels the walk.
void RunSeries::takeWindow() {
  last_.plannedUpdates = plan_->totals.updates;
  join_.setEpochLength(plan_->window.batches_per_epoch);
  *outlineCancelled_ = true;
  outlineCancelled_ = std::make_shared<std::atomic<bool>>(false);
  jobs_.run([plan = *plan_, cancelled = outlineCancelled_] { return outlineOf(plan, *cancelled); },
            [this, cancelled = outlineCancelled_](PlanOutline outline) {
              if (!*cancelled) takeOutline(std::move(outline));
            });
}

void RunSeries::takeOutline(PlanOutline outline) {
  plan_->totals = outline.totals;
  last_.plannedUpdates = outline.totals.updates;
  planned_ = std::move(outline.points);
  ++revision_;
  Q_EMIT changed();
}

void RunSeries::takeStepsChanged(const accrue::StepsChanged& body) {
  steps_ = body.steps;
}

std::optional<accrue::RunSpec> RunSeries::plannedSpec() const {
  std::optional<accrue::RunSpec> planned = spec_;
  if (planned) planned->accumulation.steps = plannedSteps_;
  if (planned) planned->accumulation.micro_batch = plannedMicroBatch_;
  return planned;
}

std::int64_t RunSeries::steps() const {
  if (plan_) return plan_->window.steps_now();
  return steps_ > 0 ? steps_ : plannedSteps_;
}

void RunSeries::setSummary(const accrue::RunSummary& summary) {
  // A run with a spec is named after it, as during training.
  name_ = accrue::is_imported(summary) ? text(summary.name) : QString();
  folder_ = QString::fromStdString(summary.dir.string());
  startedAt_ = text(summary.started_at);
  branchedFrom_ = text(summary.branched_from);
  // The training of an imported run is unknown.
  if (!plan_ && !accrue::is_imported(summary)) {
    plannedSteps_ = summary.steps;
    plannedMicroBatch_ = summary.micro_batch;
    setSpec(summary.spec);
  }
  outcome_ = {text(summary.state), text(summary.message), text(summary.weights_sha256),
              summary.updates,     summary.loss,          summary.seconds};
  if (summary.state == "running") outcome_.outcome.clear();
  summary_check_ = summary.plan_check;
  last_.plannedUpdates = summary.planned_updates;
  if (!hasEvents()) {
    last_.update = summary.updates;
    last_.loss = summary.has_loss() ? summary.loss : LastValues::none;
    last_.samples = summary.samples;
    last_.tokens = summary.tokens;
    last_.seconds = summary.seconds;
    last_.unpausedSeconds = summary.seconds - summary.paused_seconds;
    lamp_.recall(summary.exactness);
    accrue::RunState state = accrue::RunState::failed;
    if (summary.state == "running")
      state = accrue::RunState::running;
    else if (summary.state == "finished" || summary.state == "stopped")
      state = accrue::RunState::finished;
    setState(state, text(summary.message));
  }
  Q_EMIT changed();
}

std::vector<accrue::PlanFigure> RunSeries::planCheck() const {
  return plan_ && !measured_.empty() ? accrue::check_plan(*plan_, measured_) : summary_check_;
}

void RunSeries::setState(accrue::RunState state, const QString& detail) {
  if (state == state_ && detail == stateDetail_) return;
  state_ = state;
  stateDetail_ = detail;
  ++revision_;
  Q_EMIT stateChanged();
}

std::int64_t RunSeries::ranks() const {
  if (spec_) return spec_->parallel.data * spec_->parallel.tensor * spec_->parallel.pipeline;
  return static_cast<std::int64_t>(std::max(places_.size(), timeline_.lanes().size()));
}

const SeriesStore& RunSeries::series(Metric metric) const {
  switch (metric) {
    case Metric::microLoss:
      return microLoss_;
    case Metric::updateLoss:
      return updateLoss_;
    case Metric::evaluationLoss:
      return evaluationLoss_;
    case Metric::learningRate:
      return learningRate_.values;
    case Metric::gradNorm:
      return gradNorm_.values;
    case Metric::samplesPerSecond:
      return samplesPerSecond_.values;
    case Metric::tokensPerSecond:
      return tokensPerSecond_.values;
    case Metric::lossScale:
      return lossScale_.values;
    case Metric::updateNorm:
      return updateNorm_.values;
    case Metric::parameterNorm:
      return parameterNorm_.values;
    case Metric::gradientZeros:
      return gradientZeros_.values;
  }
  return updateLoss_;
}

void RunSeries::append(const std::vector<accrue::RunEvent>& events) {
  if (events.empty()) return;
  for (const accrue::RunEvent& event : events) take(event);
  tracker_.take(events);
  takeJoined();
  eventsTaken_ += static_cast<std::int64_t>(events.size());
  ++revision_;
  const bool moved = std::exchange(stateMoved_, false);
  Q_EMIT changed();
  if (moved) Q_EMIT stateChanged();
}

void RunSeries::take(const accrue::RunEvent& event) {
  if (plan_ && accrue::take_steps(plan_->window, event)) takeWindow();
  const auto visitor = [&](const auto& body) {
    using Body = std::decay_t<decltype(body)>;
    if constexpr (std::is_same_v<Body, accrue::RunStarted>)
      takeStarted(body);
    else if constexpr (std::is_same_v<Body, accrue::RankReady>) {
      places_[event.rank] = {.data = body.data, .pipeline = body.pipeline, .tensor = body.tensor};
      join_.addRank(event.rank, body.tensor == 0 && (!spec_ || body.pipeline == spec_->parallel.pipeline - 1));
    } else if constexpr (std::is_same_v<Body, accrue::MicroSteps>) {
      if (!body.end_ns.empty()) settleTimeOffset(static_cast<double>(body.end_ns.front()) * 1e-9);
      join_.take(event.rank, body);
    } else if constexpr (std::is_same_v<Body, accrue::Operations> || std::is_same_v<Body, accrue::Sync>) {
      if (!body.begin_ns.empty()) settleTimeOffset(static_cast<double>(body.begin_ns.front()) * 1e-9);
      timeline_.take(event.rank, body);
    } else if constexpr (std::is_same_v<Body, accrue::Update>)
      takeUpdate(event, body);
    else if constexpr (std::is_same_v<Body, accrue::Evaluation>)
      takeEvaluation(body);
    else if constexpr (std::is_same_v<Body, accrue::ExactnessCheck>)
      lamp_.take(body);
    else if constexpr (std::is_same_v<Body, accrue::StepsChanged>)
      takeStepsChanged(body);
    else if constexpr (std::is_same_v<Body, accrue::CheckpointDone>)
      checkpointUpdate_ = body.update;
    else if constexpr (std::is_same_v<Body, accrue::Measured>)
      measured_[event.rank] = body;
    else if constexpr (std::is_same_v<Body, accrue::Gauge>)
      takeGauge(event, body);
    else if constexpr (std::is_same_v<Body, accrue::Held>)
      held_ = body;
    else if constexpr (std::is_same_v<Body, accrue::StateChanged>)
      takeState(event, body);
    else if constexpr (std::is_same_v<Body, accrue::Warning>)
      takeProblem({.rank = event.rank,
                   .className = text(body.class_name),
                   .message = text(body.message),
                   .whatToDo = text(body.what_to_do),
                   .phase = {},
                   .logTail = {},
                   .update = body.update});
    else if constexpr (std::is_same_v<Body, accrue::RankFailed>)
      takeFailure(event, body);
    else if constexpr (std::is_same_v<Body, accrue::RunFinished>)
      takeFinished(body);
  };
  std::visit(visitor, event.body);
}

void RunSeries::takeStarted(const accrue::RunStarted& body) {
  // A resumed run keeps its place among the others.
  if (startedAt_.isEmpty() || !body.resumed) startedAt_ = text(body.started_at);
  // A branch that is resumed later reports where it continues, not where it began.
  if (branchUpdate_ == 0 && !body.branched_from.empty()) branchUpdate_ = body.resumed_update;
  branchedFrom_ = text(body.branched_from);
  if (body.resumed) {
    rewindTo(body.resumed_update, body.resumed_position);
    resetTracker();
  }
  outcome_ = {};
}

void RunSeries::takeUpdate(const accrue::RunEvent& event, const accrue::Update& body) {
  // The first report of an update counts.
  const bool repeated =
      !updateClocks_[Clock::microStep].size()
          ? false
          : static_cast<double>(body.micro_step) <= updateClocks_[Clock::microStep][updateClocks_.size() - 1];
  if (repeated) return;
  // "seconds" may count like the event times or include the time before a resume: use the nearer one.
  const double stamp = static_cast<double>(event.time_ns) * 1e-9;
  settleTimeOffset(stamp);
  const bool countsLikeEvents = std::abs(body.seconds - stamp) < std::abs(body.seconds - stamp - timeOffset_);
  const ClockPoint at = clocksOf(body, countsLikeEvents ? timeOffset_ : 0.0);
  join_.takeUpdate(body);
  updateClocks_.append(at);
  updateLoss_.append(hasLoss(body) ? body.loss : noValue);
  takeMeasured(at, body);
  for (std::size_t i = 0; i < std::min(body.weights.size(), mostWeights); ++i) {
    if (i == weights_.size() && updateClocks_.size() == 1)
      weights_.push_back(std::make_unique<SeriesStore>(updateClocks_));
    if (i < weights_.size()) weights_[i]->append(body.weights[i]);
  }
  last_.update = body.update;
  last_.samples = body.samples;
  last_.tokens = body.tokens;
  last_.epoch = body.epoch;
  if (hasLoss(body)) last_.loss = body.loss;
  last_.learningRate = body.lr.value_or(LastValues::none);
  last_.gradNorm = body.grad_norm.value_or(LastValues::none);
  last_.seconds = at[Clock::seconds];
  last_.microStep = std::max(last_.microStep, body.micro_step);
  takePause();
  measurePace();
  if (std::isfinite(last_.samplesPerSecond)) samplesPerSecond_.append(at, last_.samplesPerSecond);
  if (std::isfinite(last_.tokensPerSecond)) tokensPerSecond_.append(at, last_.tokensPerSecond);
}

void RunSeries::takeMeasured(const ClockPoint& at, const accrue::Update& body) {
  // An earlier version imported a log without rates as one with NaN rates.
  if (body.lr && !std::isnan(*body.lr)) learningRate_.append(at, *body.lr);
  if (body.grad_norm) gradNorm_.append(at, *body.grad_norm);
  if (body.loss_scale) lossScale_.append(at, *body.loss_scale);
  if (body.outcome == accrue::StepOutcome::skipped_overflow) skippedUpdates_.append(at, body.loss_scale.value_or(0.0));
  if (body.update_norm) updateNorm_.append(at, *body.update_norm);
  if (body.parameter_norm) parameterNorm_.append(at, *body.parameter_norm);
  if (body.gradient_zeros) gradientZeros_.append(at, static_cast<double>(*body.gradient_zeros));
  appendParts(lossParts_, at, body.losses, hasLoss(body));
  appendParts(scalars_, at, body.scalars);
}

/// A pause counts with the update during which the run was held.
void RunSeries::takePause() {
  const ClockColumn& seconds = updateClocks_[Clock::seconds];
  const std::size_t newest = updateClocks_.size() - 1;
  const double length = seconds[newest] - (newest > 0 ? seconds[newest - 1] : 0.0);
  const double paused = std::clamp(std::exchange(pausedSinceUpdate_, 0.0), 0.0, std::max(length, 0.0));
  if (paused > 0.0) pauses_.push_back({newest, pausedBefore(newest) + paused});
  last_.unpausedSeconds = last_.seconds - pausedBefore(newest + 1);
}

double RunSeries::pace() const {
  if (isLive()) return last_.samplesPerSecond;
  return last_.samples > 0 && last_.unpausedSeconds > 0.0 ? static_cast<double>(last_.samples) / last_.unpausedSeconds
                                                          : LastValues::none;
}

/// Seconds of pauses over the updates before that one.
double RunSeries::pausedBefore(std::size_t update) const {
  const auto next = std::ranges::lower_bound(pauses_, update, {}, &PausedUntil::update);
  return next == pauses_.begin() ? 0.0 : std::prev(next)->seconds;
}

void RunSeries::measurePace() {
  // Over the last two seconds or ten updates, whichever is longer: steady, but it follows changes. Pauses do not count.
  const ClockColumn& seconds = updateClocks_[Clock::seconds];
  const std::size_t newest = updateClocks_.size() - 1;
  std::size_t from = seconds.lowerBound(seconds[newest] - 2.0);
  from = std::min(from, newest >= 10 ? newest - 10 : 0);
  double since = seconds[from];
  double samples = updateClocks_[Clock::sample][from];
  double tokens = updateClocks_[Clock::token][from];
  if (from == newest) since = samples = tokens = 0.0;
  const double paused = pausedBefore(newest + 1) - (from == newest ? 0.0 : pausedBefore(from + 1));
  const double elapsed = seconds[newest] - since - paused;
  if (elapsed <= 0.0 || last_.samples == 0) return;
  last_.samplesPerSecond = (updateClocks_[Clock::sample][newest] - samples) / elapsed;
  last_.tokensPerSecond = (updateClocks_[Clock::token][newest] - tokens) / elapsed;
}

void RunSeries::takeEvaluation(const accrue::Evaluation& body) {
  if (!evaluationClocks_[Clock::update].size() ||
      static_cast<double>(body.update) > evaluationClocks_[Clock::update][evaluationClocks_.size() - 1]) {
    ClockPoint at;
    at[Clock::update] = static_cast<double>(body.update);
    if (updateClocks_.size() > 0) {
      const std::size_t index = updateLoss_.nearest(Clock::update, at[Clock::update]);
      at = updateClocks_.point(index);
    }
    evaluationClocks_.append(at);
    evaluationLoss_.append(body.loss);
    appendParts(evaluationParts_, at, body.losses);
    appendParts(evaluationScalars_, at, body.scalars);
    last_.evaluationLoss = body.loss;
  }
}

void RunSeries::takeGauge(const accrue::RunEvent& event, const accrue::Gauge& body) {
  gauges_[event.rank] = body;
  constexpr double mebibyte = 1024.0 * 1024.0;
  std::unique_ptr<RankMemory>& memory = memory_[event.rank];
  if (!memory) memory = std::make_unique<RankMemory>();
  ClockPoint at = updateClocks_.size() > 0 ? updateClocks_.point(updateClocks_.size() - 1) : ClockPoint{};
  at[Clock::seconds] = std::max(at[Clock::seconds], static_cast<double>(event.time_ns) * 1e-9 + timeOffset_);
  memory->clocks.append(at);
  memory->mebibytes.append(static_cast<double>(body.device_bytes > 0 ? body.device_bytes : body.rss_bytes) / mebibyte);
  last_.memoryBytes = last_.wireBytes = last_.collectives = 0;
  for (const auto& [key, gauge] : gauges_) {
    last_.memoryBytes += gauge.rss_bytes;
    last_.wireBytes += gauge.wire_bytes;
    last_.collectives = std::max(last_.collectives, gauge.collectives);
  }
}

void RunSeries::takeState(const accrue::RunEvent& event, const accrue::StateChanged& body) {
  const auto state = accrue::run_state_from(body.state);
  if (!state) return;
  if (*state == accrue::RunState::paused) {
    if (!pausedSinceNs_) pausedSinceNs_ = event.time_ns;
    timeline_.pauseAt(static_cast<double>(event.time_ns) * 1e-9 + timeOffset_);
  } else if (const auto since = std::exchange(pausedSinceNs_, std::nullopt)) {
    pausedSinceUpdate_ += static_cast<double>(event.time_ns - *since) * 1e-9;
  }
  stateMoved_ = stateMoved_ || *state != state_ || stateDetail_ != text(body.detail);
  state_ = *state;
  stateDetail_ = text(body.detail);
  if (state_ != accrue::RunState::paused) held_.reset();
}

void RunSeries::takeFailure(const accrue::RunEvent& event, const accrue::RankFailed& body) {
  takeProblem({true, event.rank, text(body.class_name), text(body.message), text(body.what_to_do), text(body.phase),
               text(body.log_tail), body.signal, body.update, body.micro_step});
}

void RunSeries::takeProblem(RunProblem problem) {
  problems_.push_back(std::move(problem));
  ++problemCount_;
  if (problems_.size() <= mostProblems) return;
  const auto newest = problems_.end() - 1;
  const auto warning = std::ranges::find(problems_.begin(), newest, false, &RunProblem::fatal);
  problems_.erase(warning == newest ? problems_.begin() : warning);
}

void RunSeries::takeFinished(const accrue::RunFinished& body) {
  join_.flush();
  outcome_ = {text(body.outcome), text(body.reason), text(body.weights_sha256), body.updates, body.loss, body.seconds};
  if (accrue::is_over(state_)) return;
  state_ = body.outcome == "failed" ? accrue::RunState::failed : accrue::RunState::finished;
  stateDetail_ = text(body.reason);
  stateMoved_ = true;
}

void RunSeries::takeJoined() {
  for (const JoinedMicroStep& point : join_.takeJoined()) {
    microClocks_.append(point.at);
    microLoss_.append(point.loss);
    if (isMeasured(point.loss)) last_.microLoss = point.loss;
    last_.microStep = std::max(last_.microStep, point.microStep);
    last_.windowPosition = point.windowPosition;
    last_.windowSize = point.windowSize;
  }
}

void RunSeries::settleTimeOffset(double rawSeconds) {
  if (!offsetPending_) return;
  offsetPending_ = false;
  // A resumed run may count its time from its own start or from the first one's.
  constexpr double slack = 1e-3;
  timeOffset_ = rawSeconds + slack < keptSeconds_ ? keptSeconds_ : 0.0;
  join_.setTimeOffset(timeOffset_);
  timeline_.setTimeOffset(timeOffset_);
}

void RunSeries::rewindTo(std::int64_t update, std::int64_t position) {
  takeJoined();
  const double kept = static_cast<double>(update);
  const std::size_t updates = updateClocks_[Clock::update].upperBound(kept);
  const ClockPoint at = updates > 0 ? updateClocks_.point(updates - 1) : ClockPoint{};
  const std::size_t micro =
      microClocks_[Clock::microStep].upperBound(at[Clock::microStep] + static_cast<double>(position));
  const ClockPoint from = position > 0 && micro > 0 ? microClocks_.point(micro - 1) : at;
  const std::size_t evaluations = evaluationClocks_[Clock::update].upperBound(kept);
  updateLoss_.truncate(updates);
  for (const auto& [rank, memory] : memory_) {
    const std::size_t reports = update > 0 ? memory->clocks[Clock::update].upperBound(kept) : 0;
    memory->mebibytes.truncate(reports);
    memory->clocks.truncate(reports);
  }
  for (UpdateSeries* series : ofSomeUpdates_) series->rewindTo(kept);
  for (const PartSeries* parts : {&lossParts_, &evaluationParts_, &scalars_, &evaluationScalars_})
    for (const auto& [name, part] : *parts) part->rewindTo(kept);
  for (const auto& weight : weights_) weight->truncate(updates);
  updateClocks_.truncate(updates);
  microLoss_.truncate(micro);
  microClocks_.truncate(micro);
  evaluationLoss_.truncate(evaluations);
  evaluationClocks_.truncate(evaluations);
  std::erase_if(pauses_, [updates](const PausedUntil& each) { return each.update >= updates; });
  pausedSinceNs_.reset();
  pausedSinceUpdate_ = 0.0;
  lamp_.rewind(update);
  join_.rewind(from);
  timeline_.rewind(static_cast<std::int64_t>(std::llround(from[Clock::microStep])));
  last_.update = updates > 0 ? update : 0;
  last_.microStep = static_cast<std::int64_t>(std::llround(from[Clock::microStep]));
  last_.windowPosition = position;
  std::size_t labelled = updates;
  while (labelled > 0 && !isMeasured(updateLoss_.value(labelled - 1))) --labelled;
  last_.loss = labelled > 0 ? updateLoss_.value(labelled - 1) : LastValues::none;
  keptSeconds_ = std::max(at[Clock::seconds], timeline_.end());
  offsetPending_ = true;
}

void RunSeries::clear() {
  rewindTo(0, 0);
  updateLoss_.truncate(0);
  // Parts of the losses and scalars stay, emptied: a table may show them.
  weights_.clear();
  join_.reset();
  timeline_.clear();
  resetTracker();
  gauges_.clear();
  measured_.clear();
  problems_.clear();
  problemCount_ = 0;
  outcome_ = {};
  const std::int64_t planned = last_.plannedUpdates;
  last_ = {};
  last_.plannedUpdates = planned;
  places_.clear();
  branchUpdate_ = checkpointUpdate_ = 0;
  offsetPending_ = false;
  timeOffset_ = keptSeconds_ = 0.0;
  eventsTaken_ = tracesNotDrawn_ = 0;
  ++revision_;
  Q_EMIT changed();
}

QString RunSeries::windowText() const {
  if (last_.windowSize <= 0) return {};
  return tr("%1 of %2").arg(last_.windowPosition).arg(last_.windowSize);
}

QString RunSeries::progressText() const {
  QString result = last_.plannedUpdates > 0
                       ? tr("update %1 of %2").arg(groupedNumber(last_.update), groupedNumber(last_.plannedUpdates))
                       : tr("update %1").arg(groupedNumber(last_.update));
  if (const QString window = windowText(); !window.isEmpty() && isLive())
    result = tr("%1, micro-step %2").arg(result, window);
  return result;
}

std::vector<std::pair<double, double>> RunSeries::plannedLearningRate(Clock clock) const {
  std::vector<std::pair<double, double>> result;
  const bool timed = clock == Clock::seconds || clock == Clock::computeSeconds;
  double pace = 1.0;
  if (timed) {
    const std::size_t count = updateClocks_.size();
    if (count < 2) return result;
    pace = updateClocks_[clock][count - 1] / std::max(updateClocks_[Clock::update][count - 1], 1.0);
  }
  const bool known = timed || clock == Clock::microStep || clock == Clock::update || plannedEnd(clock).has_value();
  if (!known) return result;
  result.reserve(planned_.size());
  for (const PlannedPoint& point : planned_)
    result.emplace_back(timed ? point.at[Clock::update] * pace : point.at[clock], point.lr);
  return result;
}

std::optional<double> RunSeries::plannedEnd(Clock clock) const {
  if (planned_.empty() || clock == Clock::seconds || clock == Clock::computeSeconds) return {};
  const double end = planned_.back().at[clock];
  return end > 0.0 ? std::optional(end) : std::nullopt;
}

double RunSeries::latest(Clock clock) const {
  double result = 0.0;
  for (const ClockTable* table : {&microClocks_, &updateClocks_})
    if (table->size() > 0) result = std::max(result, (*table)[clock][table->size() - 1]);
  return result;
}

}  // namespace accrue::ui
