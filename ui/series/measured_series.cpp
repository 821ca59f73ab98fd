// SPDX-License-Identifier: GPL-3.0-or-later
#include "measured_series.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "accrue/run/events/run_state.h"
#include "accrue/run/record/run_store.h"
#include "kit/no_value.h"
#include "kit/text.h"

namespace accrue::ui {

namespace {

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
    std::unique_ptr<UpdateSeries>& part = parts[fromView(name)];
    if (!part) part = std::make_unique<UpdateSeries>();
    part->append(at, measured ? value : noValue);
  }
}

/// The loss of a window without a label means nothing.
bool hasLoss(const accrue::Update& body) {
  return body.outcome != accrue::StepOutcome::skipped_empty;
}

/// Recorded weights beyond this many are left to the file.
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

void MeasuredSeries::recall(const accrue::RunSummary& summary) {
  last_.update = summary.updates;
  last_.loss = summary.has_loss() ? summary.loss : LastValues::none;
  last_.samples = summary.samples;
  last_.tokens = summary.tokens;
  last_.seconds = summary.seconds;
  last_.unpausedSeconds = summary.seconds - summary.paused_seconds;
}

void MeasuredSeries::take(const accrue::RunEvent& event) {
  const auto visitor = [&](const auto& body) {
    using Body = std::decay_t<decltype(body)>;
    if constexpr (std::is_same_v<Body, accrue::MicroSteps>) {
      if (!body.end_ns.empty()) settleTimeOffset(static_cast<double>(body.end_ns.front()) * 1e-9);
      join_.take(event.rank, body);
    } else if constexpr (std::is_same_v<Body, accrue::Operations> || std::is_same_v<Body, accrue::Sync>) {
      if (!body.begin_ns.empty()) settleTimeOffset(static_cast<double>(body.begin_ns.front()) * 1e-9);
      timeline_.take(event.rank, body);
    } else if constexpr (std::is_same_v<Body, accrue::Update>)
      takeUpdate(event, body);
    else if constexpr (std::is_same_v<Body, accrue::Evaluation>)
      takeEvaluation(body);
    else if constexpr (std::is_same_v<Body, accrue::Gauge>)
      takeGauge(event, body);
    else if constexpr (std::is_same_v<Body, accrue::StateChanged>)
      takeState(event, body);
    else if constexpr (std::is_same_v<Body, accrue::RunFinished>)
      join_.flush();
  };
  std::visit(visitor, event.body);
}

void MeasuredSeries::takeUpdate(const accrue::RunEvent& event, const accrue::Update& body) {
  // The first report of an update counts.
  const bool repeated =
      !updateClocks_[Clock::microStep].size()
          ? false
          : static_cast<double>(body.micro_step) <= updateClocks_[Clock::microStep][updateClocks_.size() - 1];
  if (repeated) return;
  // "seconds" may count like the event times or include the time before a resume: take the nearer one.
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

void MeasuredSeries::takeMeasured(const ClockPoint& at, const accrue::Update& body) {
  // An earlier version imported a log without rates as one of rates that are no numbers.
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

/// Adds the pause to the update during which the run was held.
void MeasuredSeries::takePause() {
  const ClockColumn& seconds = updateClocks_[Clock::seconds];
  const std::size_t newest = updateClocks_.size() - 1;
  const double length = seconds[newest] - (newest > 0 ? seconds[newest - 1] : 0.0);
  const double paused = std::clamp(std::exchange(pausedSinceUpdate_, 0.0), 0.0, std::max(length, 0.0));
  if (paused > 0.0) pauses_.push_back({newest, pausedBefore(newest) + paused});
  last_.unpausedSeconds = last_.seconds - pausedBefore(newest + 1);
}

double MeasuredSeries::meanPace() const {
  return last_.samples > 0 && last_.unpausedSeconds > 0.0 ? static_cast<double>(last_.samples) / last_.unpausedSeconds
                                                          : LastValues::none;
}

/// Seconds, over the updates before that one.
double MeasuredSeries::pausedBefore(std::size_t update) const {
  const auto next = std::ranges::lower_bound(pauses_, update, {}, &PausedUntil::update);
  return next == pauses_.begin() ? 0.0 : std::prev(next)->seconds;
}

void MeasuredSeries::measurePace() {
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

void MeasuredSeries::takeEvaluation(const accrue::Evaluation& body) {
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

void MeasuredSeries::takeGauge(const accrue::RunEvent& event, const accrue::Gauge& body) {
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

void MeasuredSeries::takeState(const accrue::RunEvent& event, const accrue::StateChanged& body) {
  const auto state = accrue::run_state_from(body.state);
  if (!state) return;
  if (*state == accrue::RunState::paused) {
    if (!pausedSinceNs_) pausedSinceNs_ = event.time_ns;
    timeline_.pauseAt(static_cast<double>(event.time_ns) * 1e-9 + timeOffset_);
  } else if (const auto since = std::exchange(pausedSinceNs_, std::nullopt)) {
    pausedSinceUpdate_ += static_cast<double>(event.time_ns - *since) * 1e-9;
  }
}

void MeasuredSeries::takeJoined() {
  for (const JoinedMicroStep& point : join_.takeJoined()) {
    microClocks_.append(point.at);
    microLoss_.append(point.loss);
    if (isMeasured(point.loss)) last_.microLoss = point.loss;
    last_.microStep = std::max(last_.microStep, point.microStep);
    last_.windowPosition = point.windowPosition;
    last_.windowSize = point.windowSize;
  }
}

void MeasuredSeries::settleTimeOffset(double rawSeconds) {
  if (!offsetPending_) return;
  offsetPending_ = false;
  // A resumed run may count its time from its own start or from the first one's.
  constexpr double slack = 1e-3;
  timeOffset_ = rawSeconds + slack < keptSeconds_ ? keptSeconds_ : 0.0;
  join_.setTimeOffset(timeOffset_);
  timeline_.setTimeOffset(timeOffset_);
}

void MeasuredSeries::rewindTo(std::int64_t update, std::int64_t position) {
  takeJoined();
  const double kept = static_cast<double>(update);
  const std::size_t updates = updateClocks_[Clock::update].upperBound(kept);
  const ClockPoint at = updates > 0 ? updateClocks_.point(updates - 1) : ClockPoint{};
  const std::size_t micro =
      microClocks_[Clock::microStep].upperBound(at[Clock::microStep] + static_cast<double>(position));
  const ClockPoint from = position > 0 && micro > 0 ? microClocks_.point(micro - 1) : at;
  truncate(updates, micro, kept);
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

/// Keeps this many updates and micro-steps, and other measurements up to that update.
void MeasuredSeries::truncate(std::size_t updates, std::size_t microSteps, double keptUpdate) {
  const std::size_t evaluations = evaluationClocks_[Clock::update].upperBound(keptUpdate);
  updateLoss_.truncate(updates);
  for (const auto& [rank, memory] : memory_) {
    const std::size_t reports = keptUpdate > 0.0 ? memory->clocks[Clock::update].upperBound(keptUpdate) : 0;
    memory->mebibytes.truncate(reports);
    memory->clocks.truncate(reports);
  }
  for (UpdateSeries* series : ofSomeUpdates_) series->rewindTo(keptUpdate);
  for (const PartSeries* parts : {&lossParts_, &evaluationParts_, &scalars_, &evaluationScalars_})
    for (const auto& [name, part] : *parts) part->rewindTo(keptUpdate);
  for (const auto& weight : weights_) weight->truncate(updates);
  updateClocks_.truncate(updates);
  microLoss_.truncate(microSteps);
  microClocks_.truncate(microSteps);
  evaluationLoss_.truncate(evaluations);
  evaluationClocks_.truncate(evaluations);
  std::erase_if(pauses_, [updates](const PausedUntil& each) { return each.update >= updates; });
  pausedSinceNs_.reset();
  pausedSinceUpdate_ = 0.0;
}

void MeasuredSeries::clear() {
  rewindTo(0, 0);
  updateLoss_.truncate(0);
  weights_.clear();
  join_.reset();
  timeline_.clear();
  gauges_.clear();
  last_ = {.plannedUpdates = last_.plannedUpdates};
  offsetPending_ = false;
  timeOffset_ = keptSeconds_ = 0.0;
}

const SeriesStore& MeasuredSeries::series(Metric metric) const {
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

double MeasuredSeries::latest(Clock clock) const {
  double result = 0.0;
  for (const ClockTable* table : {&microClocks_, &updateClocks_})
    if (table->size() > 0) result = std::max(result, (*table)[clock][table->size() - 1]);
  return result;
}

}  // namespace accrue::ui
