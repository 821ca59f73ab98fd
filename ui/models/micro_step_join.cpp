// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/micro_step_join.h"

#include <algorithm>
#include <cmath>

namespace accrue::ui {

void MicroStepJoin::setPlan(const accrue::WindowShape& shape) {
  shape_ = shape;
  steps_ = std::max<std::int64_t>(shape.steps, 1);
  restartWalk();
}

void MicroStepJoin::restartWalk() {
  here_.reset();
  walk_.reset();
  if (shape_) walk_.emplace(*shape_);
}

void MicroStepJoin::expectRanks(std::int64_t count) {
  expected_ = std::max<std::int64_t>(count, 1);
}

void MicroStepJoin::addRank(std::int64_t rank, bool reportsLoss) {
  (reportsLoss ? lossRanks_ : silentRanks_).insert(rank);
}

std::size_t MicroStepJoin::needed() const {
  const auto expected = static_cast<std::size_t>(expected_);
  return silentRanks_.empty() ? std::max(expected, lossRanks_.size()) : std::max<std::size_t>(lossRanks_.size(), 1);
}

void MicroStepJoin::take(std::int64_t rank, const accrue::MicroSteps& body) {
  if (silentRanks_.contains(rank)) return;
  const std::size_t count = std::min({body.micro_step.size(), body.loss.size(), body.tokens.size(), body.samples.size(),
                                      body.begin_ns.size(), body.forward_ns.size(), body.backward_ns.size()});
  for (std::size_t i = 0; i < count; ++i) {
    if (body.micro_step[i] <= emitted_) continue;  // a rank that came after its point was given out
    Partial& partial = waiting_[body.micro_step[i]];
    const std::int64_t items = body.tokens[i];
    if (items > 0) partial.lossSum += body.loss[i] * static_cast<double>(items);
    partial.lossPlain += body.loss[i];
    partial.items += items;
    partial.samples += body.samples[i];
    ++partial.count;
    const double busy = static_cast<double>(body.forward_ns[i] + body.backward_ns[i]) * 1e-9;
    partial.end = std::max(partial.end, static_cast<double>(body.begin_ns[i]) * 1e-9 + busy + timeOffset_);
    if (partial.lowestRank < 0 || rank < partial.lowestRank) {
      partial.lowestRank = rank;
      partial.compute = busy;
    }
  }
  emitReady();
}

void MicroStepJoin::takeUpdate(const accrue::Update& body) {
  ClockPoint truth;
  truth[Clock::microStep] = static_cast<double>(body.micro_step);
  truth[Clock::update] = static_cast<double>(body.update);
  truth[Clock::sample] = static_cast<double>(body.samples);
  truth[Clock::token] = static_cast<double>(body.tokens);
  truth[Clock::epoch] = body.epoch;
  truth[Clock::seconds] = body.seconds;
  truth[Clock::computeSeconds] = body.compute_seconds;
  if (body.outcome != accrue::StepOutcome::updated && here_ && body.micro_step >= anchorMicro_) ++skippedWindows_;
  if (body.micro_step > anchorMicro_ || anchorMicro_ == 0) {
    anchorMicro_ = body.micro_step;
    anchor_ = truth;
  }
  if (body.micro_step == emitted_)
    anchorTo(truth);
  else if (body.micro_step > emitted_)
    anchors_[body.micro_step] = truth;
}

void MicroStepJoin::anchorTo(const ClockPoint& truth) {
  for (const Clock clock : {Clock::update, Clock::sample, Clock::token, Clock::epoch, Clock::computeSeconds})
    last_[clock] = truth[clock];
}

void MicroStepJoin::emitReady() {
  while (!waiting_.empty()) {
    const auto first = waiting_.begin();
    const bool complete = static_cast<std::size_t>(first->second.count) >= needed();
    if (!complete && waiting_.size() <= patience) return;
    emitPoint(first->first, first->second);
    waiting_.erase(first);
  }
}

void MicroStepJoin::flush() {
  for (const auto& [microStep, partial] : waiting_) emitPoint(microStep, partial);
  waiting_.clear();
}

void MicroStepJoin::emitPoint(std::int64_t microStep, const Partial& partial) {
  // Updates that closed windows before this point and whose boundary was never seen (dropped traces).
  while (!anchors_.empty() && anchors_.begin()->first < microStep) {
    anchorTo(anchors_.begin()->second);
    anchors_.erase(anchors_.begin());
  }
  JoinedMicroStep point;
  point.microStep = microStep;
  point.loss = partial.items > 0 ? partial.lossSum / static_cast<double>(partial.items)
                                 : partial.lossPlain / static_cast<double>(std::max(partial.count, 1));
  point.at = last_;
  point.at[Clock::microStep] = static_cast<double>(microStep);
  point.at[Clock::sample] += static_cast<double>(partial.samples);
  point.at[Clock::token] += static_cast<double>(partial.items);
  point.at[Clock::seconds] = std::max(partial.end, last_[Clock::seconds]);
  point.at[Clock::computeSeconds] += partial.compute;
  place(point);
  last_ = point.at;
  emitted_ = microStep;
  if (const auto anchor = anchors_.find(microStep); anchor != anchors_.end()) {
    // The boundary itself: counted clocks are the update's, its compute time includes the optimizer step after it.
    anchorTo(anchor->second);
    for (const Clock clock : {Clock::update, Clock::sample, Clock::token, Clock::epoch})
      point.at[clock] = anchor->second[clock];
    anchors_.erase(anchor);
  }
  ready_.push_back(point);
}

void MicroStepJoin::place(JoinedMicroStep& point) {
  if (!walk_) {
    const double since = point.at[Clock::microStep] - anchor_[Clock::microStep];
    const double window = static_cast<double>(steps_);
    point.at[Clock::update] = std::max(point.at[Clock::update], anchor_[Clock::update] + std::min(since / window, 1.0));
    point.windowSize = steps_;
    point.windowPosition = (point.microStep - 1) % steps_ + 1;
    const double pace = anchorMicro_ > 0 ? anchor_[Clock::epoch] / anchor_[Clock::microStep] : 0.0;
    point.at[Clock::epoch] = std::max(point.at[Clock::epoch], anchor_[Clock::epoch] + since * pace);
    return;
  }
  // Seeking starts from the beginning: only the way back needs it.
  if (walk_->micro_steps_done() >= point.microStep) walk_->seek(point.microStep - 1);
  while (walk_->micro_steps_done() + 1 < point.microStep && walk_->next()) {
  }
  here_ = walk_->next();
  if (!here_) return;
  point.windowPosition = here_->position + 1;
  point.windowSize = here_->window_size;
  const double part =
      static_cast<double>(here_->position + 1) / static_cast<double>(std::max<std::int64_t>(here_->window_size, 1));
  const double update = static_cast<double>(here_->window - skippedWindows_) + part;
  point.at[Clock::update] = std::max(point.at[Clock::update], update);
  if (shape_->batches_per_epoch > 0) {
    const double batches = static_cast<double>(here_->batch + 1) / static_cast<double>(shape_->batches_per_epoch);
    point.at[Clock::epoch] = std::max(point.at[Clock::epoch], static_cast<double>(here_->epoch) + batches);
  }
}

void MicroStepJoin::rewind(const ClockPoint& at) {
  waiting_.clear();
  anchors_.clear();
  ready_.clear();
  last_ = at;
  anchor_ = at;
  emitted_ = anchorMicro_ = static_cast<std::int64_t>(std::llround(at[Clock::microStep]));
  restartWalk();
}

void MicroStepJoin::reset() {
  rewind({});
  skippedWindows_ = 0;
  lossRanks_.clear();
  silentRanks_.clear();
  timeOffset_ = 0.0;
}

std::vector<JoinedMicroStep> MicroStepJoin::takeJoined() {
  return std::exchange(ready_, {});
}

}  // namespace accrue::ui
