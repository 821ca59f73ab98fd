// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/sync_timeline.h"

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

/// Time that spans with `length` seconds from `start` spent before a moment, given the prefix sums of their lengths.
template <typename Span, typename Start, typename Length>
double spentBefore(const std::vector<Span>& spans, const std::vector<double>& before, double time, Start start,
                   Length length) {
  const std::size_t count = beginningBefore(spans, time);
  if (count == 0) return 0.0;
  const Span& last = spans[count - 1];
  return before[count - 1] + std::clamp(time - start(last), 0.0, length(last));
}

template <typename Span>
double spanBegin(const Span& span) {
  return span.begin;
}

template <typename Span>
double spanLength(const Span& span) {
  return std::max(span.end - span.begin, 0.0);
}

void extendSums(std::vector<double>& before, double previousLength) {
  before.push_back(before.empty() ? 0.0 : before.back() + previousLength);
}

}  // namespace

double Lane::begin() const {
  double first = std::numeric_limits<double>::infinity();
  if (!micro.empty()) first = std::min(first, micro.front().begin);
  if (!sync.empty()) first = std::min(first, sync.front().begin);
  return micro.empty() && sync.empty() ? 0.0 : first;
}

double Lane::end() const {
  double last = 0.0;
  if (!micro.empty()) last = std::max(last, micro.back().end());
  if (!sync.empty()) last = std::max(last, sync.back().end);
  if (!step.empty()) last = std::max(last, step.back().end);
  return last;
}

void Lane::pushMicro(const MicroSpan& span) {
  if (!micro.empty() && span.begin < micro.back().begin) return;
  extendSums(forwardBefore_, micro.empty() ? 0.0 : static_cast<double>(micro.back().forward));
  extendSums(backwardBefore_, micro.empty() ? 0.0 : static_cast<double>(micro.back().backward));
  micro.push_back(span);
}

void Lane::pushSync(const SyncSpan& span) {
  if (!sync.empty() && span.begin < sync.back().begin) return;
  extendSums(syncBefore_, sync.empty() ? 0.0 : spanLength(sync.back()));
  sync.push_back(span);
}

void Lane::pushStep(const StepSpan& span) {
  if (span.end <= span.begin || (!step.empty() && span.begin < step.back().begin)) return;
  extendSums(stepBefore_, step.empty() ? 0.0 : spanLength(step.back()));
  step.push_back(span);
}

LaneShare Lane::spent(double time) const {
  const auto seconds = [](float value) { return static_cast<double>(value); };
  return {spentBefore(micro, forwardBefore_, time, spanBegin<MicroSpan>,
                      [&](const MicroSpan& span) { return seconds(span.forward); }),
          spentBefore(
              micro, backwardBefore_, time, [](const MicroSpan& span) { return span.forwardEnd(); },
              [&](const MicroSpan& span) { return seconds(span.backward); }),
          spentBefore(sync, syncBefore_, time, spanBegin<SyncSpan>, spanLength<SyncSpan>),
          spentBefore(step, stepBefore_, time, spanBegin<StepSpan>, spanLength<StepSpan>)};
}

std::int64_t Lane::largestBytes(double from, double to) const {
  std::int64_t largest = 0;
  const std::size_t last = beginningBefore(sync, to);
  // A stretch of a pixel seldom holds many collectives; where it does, a sample of them tells the height.
  const std::size_t first = beginningBefore(sync, from);
  const std::size_t stride = std::max<std::size_t>((last - first) / 64, 1);
  for (std::size_t i = first; i < last; i += stride) largest = std::max(largest, sync[i].bytes);
  return largest;
}

void Lane::truncate(std::int64_t microStep) {
  const auto cut = [microStep](auto& spans, auto& before) {
    while (!spans.empty() && spans.back().microStep > microStep) {
      spans.pop_back();
      before.pop_back();
    }
  };
  while (!micro.empty() && micro.back().microStep > microStep) {
    micro.pop_back();
    forwardBefore_.pop_back();
    backwardBefore_.pop_back();
  }
  cut(sync, syncBefore_);
  cut(step, stepBefore_);
}

void SyncTimeline::take(std::int64_t rank, const accrue::MicroSteps& body) {
  Lane& lane = lanes_[rank];
  const std::size_t count =
      std::min({body.micro_step.size(), body.begin_ns.size(), body.forward_ns.size(), body.backward_ns.size()});
  for (std::size_t i = 0; i < count; ++i)
    lane.pushMicro({seconds(body.begin_ns[i]), static_cast<float>(body.forward_ns[i]) * 1e-9F,
                    static_cast<float>(body.backward_ns[i]) * 1e-9F, body.micro_step[i]});
}

void SyncTimeline::take(std::int64_t rank, const accrue::Sync& body) {
  Lane& lane = lanes_[rank];
  const std::size_t count = std::min({body.update.size(), body.micro_step.size(), body.axis.size(), body.op.size(),
                                      body.bytes.size(), body.begin_ns.size(), body.end_ns.size()});
  for (std::size_t i = 0; i < count; ++i) {
    lane.pushSync({seconds(body.begin_ns[i]), seconds(body.end_ns[i]), body.update[i], body.micro_step[i],
                   body.bytes[i], nameIndex(axes_, body.axis[i]), nameIndex(ops_, body.op[i])});
    ++collectives_;
    bytes_ += body.bytes[i];
    largestBytes_ = std::max(largestBytes_, body.bytes[i]);
  }
}

void SyncTimeline::take(std::int64_t rank, std::int64_t timeNs, const accrue::Update& body) {
  const auto found = lanes_.find(rank);
  if (found == lanes_.end()) return;
  Lane& lane = found->second;
  // The optimizer ran between the last collective (or backward) of the boundary and this report.
  if (lane.micro.empty() || lane.micro.back().microStep != body.micro_step) return;
  double begin = lane.micro.back().end();
  if (!lane.sync.empty() && lane.sync.back().microStep == body.micro_step)
    begin = std::max(begin, lane.sync.back().end);
  lane.pushStep({begin, seconds(timeNs), body.update, body.micro_step});
}

void SyncTimeline::clear() {
  *this = {};
}

void SyncTimeline::rewind(std::int64_t microStep) {
  collectives_ = bytes_ = largestBytes_ = 0;
  for (auto& [rank, lane] : lanes_) {
    lane.truncate(microStep);
    collectives_ += static_cast<std::int64_t>(lane.sync.size());
    for (const SyncSpan& span : lane.sync) {
      bytes_ += span.bytes;
      largestBytes_ = std::max(largestBytes_, span.bytes);
    }
  }
}

double SyncTimeline::begin() const {
  double first = std::numeric_limits<double>::infinity();
  for (const auto& [rank, lane] : lanes_) first = std::min(first, lane.begin());
  return lanes_.empty() ? 0.0 : first;
}

double SyncTimeline::end() const {
  double last = 0.0;
  for (const auto& [rank, lane] : lanes_) last = std::max(last, lane.end());
  return last;
}

std::uint8_t SyncTimeline::nameIndex(std::vector<QString>& names, const std::string& name) {
  const QString wanted = QString::fromStdString(name);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == wanted) return static_cast<std::uint8_t>(i);
  if (names.size() < 255) names.push_back(wanted);
  return static_cast<std::uint8_t>(names.size() - 1);
}

}  // namespace accrue::ui
