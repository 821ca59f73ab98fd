// SPDX-License-Identifier: GPL-3.0-or-later
#include "lane.h"

#include <algorithm>
#include <limits>

namespace accrue::ui {

namespace {

/// Number of spans that begin before a time.
template <typename Span>
std::size_t beginningBefore(const std::vector<Span>& spans, double time) {
  const auto after =
      std::lower_bound(spans.begin(), spans.end(), time, [](const Span& span, double t) { return span.begin < t; });
  return static_cast<std::size_t>(after - spans.begin());
}

double lengthOf(const ComputeSpan& span) {
  return std::max(static_cast<double>(span.seconds), 0.0);
}

/// Removes the first elements.
template <typename T>
void dropFront(std::vector<T>& from, std::size_t count) {
  from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace

double PastTime::spent(double time) const {
  if (time >= end_.time) return end_.spent;
  const auto after = std::ranges::upper_bound(samples_, time, {}, &Sample::time);
  if (after == samples_.begin()) return 0.0;
  const Sample& from = *(after - 1);
  const Sample& to = after == samples_.end() ? end_ : *after;
  if (!(to.time > from.time)) return from.spent;
  return from.spent + (to.spent - from.spent) * (time - from.time) / (to.time - from.time);
}

void PastTime::thin() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < samples_.size(); i += 2) samples_[kept++] = samples_[i];
  samples_.resize(kept);
}

void PastTime::truncate(double time) {
  if (time >= end_.time) return;
  end_ = {time, spent(time)};
  while (!samples_.empty() && samples_.back().time >= time) samples_.pop_back();
}

/// Spans arrive ordered by begin.
bool SpanTrack::push(const ComputeSpan& span) {
  if (!spans_.empty() && span.begin < spans_.back().begin) return false;
  before_.push_back(spans_.empty() ? past_.total() : before_.back() + lengthOf(spans_.back()));
  spans_.push_back(span);
  return true;
}

double SpanTrack::spent(double time) const {
  if (time < past_.end()) return past_.spent(time);
  const std::size_t count = beginningBefore(spans_, time);
  if (count == 0) return past_.total();
  const ComputeSpan& last = spans_[count - 1];
  return before_[count - 1] + std::clamp(time - last.begin, 0.0, lengthOf(last));
}

void SpanTrack::condense(const std::vector<double>& moments) {
  for (std::size_t i = 0; i + 1 < moments.size(); ++i) past_.add(moments[i], spent(moments[i]));
  const double end = moments.back();
  std::size_t over = 0;
  while (over < spans_.size() && spans_[over].end() <= end) ++over;
  // An operation in progress at that moment keeps its span, so its time is counted from the span alone.
  const double total = over < spans_.size() ? before_[over] : spent(end);
  past_.endAt(end, total);
  dropFront(spans_, over);
  dropFront(before_, over);
}

void SpanTrack::truncate(std::int64_t microStep, double time) {
  if (time < past_.end()) {
    spans_.clear();
    before_.clear();
  }
  while (!spans_.empty() && spans_.back().microStep > microStep) {
    spans_.pop_back();
    before_.pop_back();
  }
  past_.truncate(time);
}

void BusyTime::add(double begin, double end) {
  begin = std::max(begin, past_.end());
  end = std::max(begin, end);
  // Intervals that share more than an edge with it are merged.
  auto first = std::ranges::upper_bound(intervals_, begin, {}, &Interval::end);
  const auto last = std::ranges::lower_bound(first, intervals_.end(), end, {}, &Interval::begin);
  Interval merged{begin, end};
  if (first != last) merged = {std::min(begin, first->begin), std::max(end, (last - 1)->end)};
  first = intervals_.insert(intervals_.erase(first, last), merged);
  const auto at = static_cast<std::size_t>(first - intervals_.begin());
  before_.resize(intervals_.size());
  for (std::size_t i = at; i < intervals_.size(); ++i)
    before_[i] = i == 0 ? past_.total() : before_[i - 1] + intervals_[i - 1].end - intervals_[i - 1].begin;
}

double BusyTime::spent(double time) const {
  if (time < past_.end()) return past_.spent(time);
  const std::size_t count = beginningBefore(intervals_, time);
  if (count == 0) return past_.total();
  const Interval& last = intervals_[count - 1];
  return before_[count - 1] + std::min(time, last.end) - last.begin;
}

double BusyTime::beginReaching(double time) const {
  const auto first = std::ranges::lower_bound(intervals_, time, {}, &Interval::end);
  return first == intervals_.end() ? time : first->begin;
}

void BusyTime::condense(const std::vector<double>& moments) {
  for (std::size_t i = 0; i + 1 < moments.size(); ++i) past_.add(moments[i], spent(moments[i]));
  const double end = moments.back();
  past_.endAt(end, spent(end));
  std::size_t over = 0;
  while (over < intervals_.size() && intervals_[over].end <= end) ++over;
  dropFront(intervals_, over);
  dropFront(before_, over);
  if (intervals_.empty() || intervals_.front().begin >= end) return;
  intervals_.front().begin = end;
  before_.front() = past_.total();
}

void BusyTime::truncate(double time) {
  intervals_.clear();
  before_.clear();
  past_.truncate(time);
}

void BusyTime::dropAfter(double time) {
  while (!intervals_.empty() && intervals_.back().end > time) {
    intervals_.pop_back();
    before_.pop_back();
  }
  past_.truncate(time);
}

void TransferTime::add(const SyncSpan& span) {
  all_.add(span.transfer, span.end);
  if (!span.isAside()) training_.add(span.transfer, span.end);
}

void TransferTime::condense(const std::vector<double>& moments) {
  for (BusyTime* time : {&training_, &all_}) time->condense(moments);
}

void TransferTime::thin() {
  for (BusyTime* time : {&training_, &all_}) time->thin();
}

void TransferTime::truncate(double time) {
  for (BusyTime* each : {&training_, &all_}) each->truncate(time);
}

double Lane::begin() const {
  double first = std::numeric_limits<double>::infinity();
  if (!micro.empty()) first = std::min(first, micro.front().begin);
  if (!sync.empty()) first = std::min(first, sync.front().begin);
  return micro.empty() && sync.empty() ? 0.0 : first;
}

double Lane::end() const {
  double last = 0.0;
  for (const auto* spans : {&forward, &backward, &step})
    if (!spans->empty()) last = std::max(last, spans->back().end());
  return std::max(last, communication_.end());
}

void Lane::endPause(double begin) {
  if (!pausedAt_ || begin < *pausedAt_) return;
  if (const double before = end(); before < begin) paused_.add(before, begin);
  pausedAt_.reset();
}

void Lane::push(accrue::ComputeKind kind, const ComputeSpan& span) {
  endPause(span.begin);
  switch (kind) {
    case accrue::ComputeKind::forward:
      if (!forward.push(span) || (!micro.empty() && span.microStep <= micro.back().last())) return;
      micro.push_back({span.begin, span.microStep});
      ++microSteps_;
      return;
    case accrue::ComputeKind::backward:
      backward.push(span);
      return;
    case accrue::ComputeKind::step:
      step.push(span);
      return;
  }
}

void Lane::pushSync(const SyncSpan& span) {
  endPause(span.begin);
  sync.insert(std::ranges::upper_bound(sync, span.begin, {}, &SyncSpan::begin), span);
  count(span);
}

void Lane::meet(const SyncSpan& span, double last) {
  for (auto own = std::ranges::lower_bound(sync, span.begin, {}, &SyncSpan::begin);
       own != sync.end() && own->begin == span.begin; ++own) {
    if (own->axis != span.axis || own->op != span.op || own->end != span.end) continue;
    own->transfer = std::max(own->begin, last);
    count(*own);
    return;
  }
}

void Lane::count(const SyncSpan& span) {
  communication_.add(span.begin, span.end);
  auto use = std::ranges::find(uses, span.axis, &AxisUse::axis);
  if (use == uses.end()) use = uses.insert(uses.end(), AxisUse{.axis = span.axis, .time = {}});
  if (span.transfer >= span.end) return;
  transfers_.add(span);
  use->time.add(span);
}

LaneShare Lane::spent(double time) const {
  return {forward.spent(time), backward.spent(time), transfers_.training(time), transfers_.aside(time),
          step.spent(time)};
}

std::int64_t Lane::largestBytes(double from, double to) const {
  std::int64_t largest = 0;
  const std::size_t last = beginningBefore(sync, to);
  // A pixel rarely holds many collectives; if it does, a sample of them decides the height.
  const std::size_t first = beginningBefore(sync, from);
  const std::size_t stride = std::max<std::size_t>((last - first) / 64, 1);
  for (std::size_t i = first; i < last; i += stride) largest = std::max(largest, sync[i].bytes);
  return largest;
}

template <typename Take>
void Lane::eachTrack(Take take) {
  take(forward);
  take(backward);
  take(step);
  take(communication_);
  take(transfers_);
  take(paused_);
  for (AxisUse& use : uses) take(use.time);
}

std::vector<SyncSpan> Lane::condense() {
  if (micro.size() - past_ <= 2 * leastKept) return {};
  const std::size_t kept = micro.size() - leastKept;  // the first place that keeps its spans
  std::vector<double> moments;
  for (std::size_t i = past_; i < kept; i += sharing_) moments.push_back(micro[i].begin);
  moments.push_back(micro[kept].begin);
  eachTrack([&](auto& track) { track.condense(moments); });
  mergePlaces(past_, kept, sharing_);
  for (; past_ > mostPast; sharing_ *= 2) {
    mergePlaces(0, past_, 2);
    eachTrack([](auto& track) { track.thin(); });
  }
  std::vector<SyncSpan> gone;
  const double end = moments.back();
  std::erase_if(sync, [&](const SyncSpan& span) {
    if (span.end > end) return false;
    gone.push_back(span);
    return true;
  });
  return gone;
}

/// Merges groups of `neighbours` places of [first, last); the past ends behind them.
void Lane::mergePlaces(std::size_t first, std::size_t last, std::size_t neighbours) {
  std::size_t merged = first;
  for (std::size_t i = first; i < last; i += neighbours, ++merged) {
    MicroPlace place = micro[i];
    place.count = micro[std::min(i + neighbours, last) - 1].last() - place.microStep + 1;
    micro[merged] = place;
  }
  micro.erase(micro.begin() + static_cast<std::ptrdiff_t>(merged), micro.begin() + static_cast<std::ptrdiff_t>(last));
  past_ = merged;
}

double Lane::beginAfter(std::int64_t microStep) const {
  const auto after = std::ranges::upper_bound(micro, microStep, {}, &MicroPlace::microStep);
  const double next = after == micro.end() ? std::max(end(), micro.back().begin) : after->begin;
  if (after == micro.begin()) return next;
  const MicroPlace& place = *(after - 1);
  if (microStep >= place.last()) return next;
  const auto part = static_cast<double>(microStep - place.microStep + 1) / static_cast<double>(place.count);
  return place.begin + (next - place.begin) * part;
}

void Lane::truncate(std::int64_t microStep) {
  if (micro.empty() && sync.empty()) return;
  const double end = microStep < condensedTo() ? beginAfter(microStep) : std::numeric_limits<double>::infinity();
  while (!micro.empty() && micro.back().microStep > microStep) {
    microSteps_ -= micro.back().count;
    micro.pop_back();
  }
  past_ = std::min(past_, micro.size());
  if (!micro.empty() && micro.back().last() > microStep) {
    microSteps_ -= micro.back().last() - microStep;
    micro.back().count = microStep - micro.back().microStep + 1;
  }
  for (SpanTrack* track : {&forward, &backward, &step}) track->truncate(microStep, end);
  std::erase_if(sync, [&](const SyncSpan& span) { return span.microStep > microStep || span.end > end; });
  communication_.truncate(end);
  transfers_.truncate(end);
  for (AxisUse& use : uses) use.time.truncate(end);
  for (const SyncSpan& span : sync) count(span);
  paused_.dropAfter(this->end());
  pausedAt_.reset();
}

std::vector<SyncSpan>::const_iterator Lane::syncReaching(double time) const {
  return std::ranges::lower_bound(sync, communication_.beginReaching(time), {}, &SyncSpan::begin);
}

}  // namespace accrue::ui
