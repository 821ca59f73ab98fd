// SPDX-License-Identifier: GPL-3.0-or-later
#include "micro_step_join.h"

#include <algorithm>
#include <cmath>

#include "kit/no_value.h"

namespace accrue::ui {

void MicroStepJoin::expectRanks(std::int64_t count) {
  expected_ = std::max<std::int64_t>(count, 1);
}

void MicroStepJoin::addRank(std::int64_t rank, bool reportsLoss) {
  (reportsLoss ? lossRanks_ : silentRanks_).insert(rank);
}

std::size_t MicroStepJoin::needed() const {
  return std::max(static_cast<std::size_t>(expected_), lossRanks_.size());
}

void MicroStepJoin::take(std::int64_t rank, const accrue::MicroSteps& body) {
  if (silentRanks_.contains(rank)) return;
  for (std::size_t i = 0; i < body.micro_step.size(); ++i) {  // the codec has checked that lengths are equal
    if (body.micro_step[i] <= emitted_) continue;             // the point was emitted before this rank reported
    Partial& partial = waiting_[body.micro_step[i]];
    partial.update = body.update[i];
    partial.position = body.position[i];
    partial.size = body.size[i];
    partial.epoch = body.epoch[i];
    partial.batch = body.batch[i];
    const std::int64_t items = body.tokens[i];
    if (items > 0) partial.lossSum += body.loss[i] * static_cast<double>(items);
    partial.items += items;
    partial.samples += body.samples[i];
    ++partial.count;
    partial.end = std::max(partial.end, static_cast<double>(body.end_ns[i]) * 1e-9 + timeOffset_);
    if (partial.lowestRank < 0 || rank < partial.lowestRank) {
      partial.lowestRank = rank;
      partial.compute = static_cast<double>(body.compute_ns[i]) * 1e-9;
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
  if (body.micro_step == emitted_)
    anchorTo(truth);
  else if (body.micro_step > emitted_)
    anchors_[body.micro_step] = truth;
  // For a run whose micro-steps are not reported at all.
  for (; anchors_.size() > patience; anchors_.erase(anchors_.begin())) anchorTo(anchors_.begin()->second);
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
  point.loss = partial.items > 0 ? partial.lossSum / static_cast<double>(partial.items) : noValue;
  point.at = last_;
  point.at[Clock::microStep] = static_cast<double>(microStep);
  point.at[Clock::sample] += static_cast<double>(partial.samples);
  point.at[Clock::token] += static_cast<double>(partial.items);
  point.at[Clock::seconds] = std::max(partial.end, last_[Clock::seconds]);
  point.at[Clock::computeSeconds] += partial.compute;
  place(point, partial);
  last_ = point.at;
  emitted_ = microStep;
  if (const auto anchor = anchors_.find(microStep); anchor != anchors_.end()) {
    // The boundary itself: counted clocks are the update's; its compute time includes the optimizer step after it.
    anchorTo(anchor->second);
    for (const Clock clock : {Clock::update, Clock::sample, Clock::token, Clock::epoch})
      point.at[clock] = anchor->second[clock];
    anchors_.erase(anchor);
  }
  ready_.push_back(point);
}

/// Sets the clocks that follow from the micro-step's place in its window and its epoch. Every window has its own
/// number, with or without an optimizer step.
void MicroStepJoin::place(JoinedMicroStep& point, const Partial& partial) const {
  point.windowPosition = partial.position;
  point.windowSize = partial.size;
  const double part =
      static_cast<double>(partial.position) / static_cast<double>(std::max<std::int64_t>(partial.size, 1));
  point.at[Clock::update] = std::max(point.at[Clock::update], static_cast<double>(partial.update - 1) + part);
  if (epochLength_ <= 0) return;
  const double batches = static_cast<double>(partial.batch + 1) / static_cast<double>(epochLength_);
  point.at[Clock::epoch] = std::max(point.at[Clock::epoch], static_cast<double>(partial.epoch) + batches);
}

void MicroStepJoin::rewind(const ClockPoint& at) {
  waiting_.clear();
  anchors_.clear();
  ready_.clear();
  last_ = at;
  emitted_ = static_cast<std::int64_t>(std::llround(at[Clock::microStep]));
}

void MicroStepJoin::reset() {
  rewind({});
  lossRanks_.clear();
  silentRanks_.clear();
  timeOffset_ = 0.0;
}

std::vector<JoinedMicroStep> MicroStepJoin::takeJoined() {
  return std::exchange(ready_, {});
}

}  // namespace accrue::ui
