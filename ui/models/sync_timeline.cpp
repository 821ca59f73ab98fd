// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/sync_timeline.h"

#include <QStringList>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace accrue::ui {

namespace {

/// Calls that some rank of their group has yet to report; more are of traces that got lost.
constexpr std::size_t mostOpen = 4096;

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

/// Time covered by spans before a moment, given the prefix sums of their lengths.
double spentBefore(const std::vector<ComputeSpan>& spans, const std::vector<double>& before, double time) {
  const std::size_t count = beginningBefore(spans, time);
  if (count == 0) return 0.0;
  const ComputeSpan& last = spans[count - 1];
  return before[count - 1] + std::clamp(time - last.begin, 0.0, lengthOf(last));
}

/// Spans arrive ordered by begin; one that is out of order is left out.
bool pushSpan(std::vector<ComputeSpan>& spans, std::vector<double>& before, const ComputeSpan& span) {
  if (!spans.empty() && span.begin < spans.back().begin) return false;
  before.push_back(spans.empty() ? 0.0 : before.back() + lengthOf(spans.back()));
  spans.push_back(span);
  return true;
}

/// Keeps the spans of micro-steps up to this one.
void cut(std::vector<ComputeSpan>& spans, std::vector<double>& before, std::int64_t microStep) {
  while (!spans.empty() && spans.back().microStep > microStep) {
    spans.pop_back();
    before.pop_back();
  }
}

}  // namespace

void BusyTime::add(double begin, double end) {
  end = std::max(begin, end);
  // Intervals that share more than an edge with it become one.
  auto first = std::ranges::upper_bound(intervals_, begin, {}, &Interval::end);
  const auto last = std::ranges::lower_bound(first, intervals_.end(), end, {}, &Interval::begin);
  Interval merged{begin, end};
  if (first != last) merged = {std::min(begin, first->begin), std::max(end, (last - 1)->end)};
  first = intervals_.insert(intervals_.erase(first, last), merged);
  const auto at = static_cast<std::size_t>(first - intervals_.begin());
  before_.resize(intervals_.size());
  for (std::size_t i = at; i < intervals_.size(); ++i)
    before_[i] = i == 0 ? 0.0 : before_[i - 1] + intervals_[i - 1].end - intervals_[i - 1].begin;
}

double BusyTime::spent(double time) const {
  const std::size_t count = beginningBefore(intervals_, time);
  if (count == 0) return 0.0;
  const Interval& last = intervals_[count - 1];
  return before_[count - 1] + std::min(time, last.end) - last.begin;
}

double BusyTime::beginReaching(double time) const {
  const auto first = std::ranges::lower_bound(intervals_, time, {}, &Interval::end);
  return first == intervals_.end() ? time : first->begin;
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

void Lane::push(accrue::ComputeKind kind, const ComputeSpan& span) {
  switch (kind) {
    case accrue::ComputeKind::forward:
      if (pushSpan(forward, forwardBefore_, span) && (micro.empty() || span.microStep > micro.back().microStep))
        micro.push_back({span.begin, span.microStep});
      return;
    case accrue::ComputeKind::backward:
      pushSpan(backward, backwardBefore_, span);
      return;
    case accrue::ComputeKind::step:
      pushSpan(step, stepBefore_, span);
      return;
  }
}

void Lane::pushSync(const SyncSpan& span) {
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
  transfers_.add(span.transfer, span.end);
  use->time.add(span.transfer, span.end);
}

LaneShare Lane::spent(double time) const {
  return {spentBefore(forward, forwardBefore_, time), spentBefore(backward, backwardBefore_, time),
          transfers_.spent(time), spentBefore(step, stepBefore_, time)};
}

std::int64_t Lane::largestBytes(double from, double to) const {
  std::int64_t largest = 0;
  const std::size_t last = beginningBefore(sync, to);
  // A pixel seldom holds many collectives; if it does, a sample of them decides the height.
  const std::size_t first = beginningBefore(sync, from);
  const std::size_t stride = std::max<std::size_t>((last - first) / 64, 1);
  for (std::size_t i = first; i < last; i += stride) largest = std::max(largest, sync[i].bytes);
  return largest;
}

void Lane::truncate(std::int64_t microStep) {
  while (!micro.empty() && micro.back().microStep > microStep) micro.pop_back();
  cut(forward, forwardBefore_, microStep);
  cut(backward, backwardBefore_, microStep);
  cut(step, stepBefore_, microStep);
  std::erase_if(sync, [microStep](const SyncSpan& span) { return span.microStep > microStep; });
  communication_ = {};
  transfers_ = {};
  uses.clear();
  for (const SyncSpan& span : sync) count(span);
}

std::vector<SyncSpan>::const_iterator Lane::syncReaching(double time) const {
  return std::ranges::lower_bound(sync, communication_.beginReaching(time), {}, &SyncSpan::begin);
}

void SyncTimeline::take(std::int64_t rank, const accrue::Operations& body) {
  Lane& lane = lanes_[rank];
  for (std::size_t i = 0; i < body.kind.size(); ++i)
    lane.push(body.kind[i], {seconds(body.begin_ns[i]), static_cast<float>(body.end_ns[i] - body.begin_ns[i]) * 1e-9F,
                             static_cast<std::int32_t>(body.chunk[i]), body.micro_step[i]});
}

void SyncTimeline::take(std::int64_t rank, const accrue::Sync& body) {
  Lane& lane = lanes_[rank];
  for (std::size_t i = 0; i < body.op.size(); ++i) {
    SyncSpan span{.begin = seconds(body.begin_ns[i]),
                  .end = seconds(body.end_ns[i]),
                  .update = body.update[i],
                  .microStep = body.micro_step[i],
                  .bytes = body.bytes[i],
                  .axis = nameIndex(axes_, body.axis[i]),
                  .op = nameIndex(ops_, body.op[i])};
    const accrue::RankList group = groupOf(rank, span);
    span.transfer = group.empty() ? span.begin : span.end;
    lane.pushSync(span);
    count(rank, span);
    if (!group.empty()) join(rank, group, span);
  }
}

/// The ranks that a call waits for; empty if it waits for none that is known.
accrue::RankList SyncTimeline::groupOf(std::int64_t rank, const SyncSpan& span) const {
  if (rank < 0 || rank >= grid_.world() || isMessage(span)) return {};
  using accrue::Axis;
  for (const Axis axis : {Axis::data, Axis::pipeline, Axis::tensor, Axis::context, Axis::model, Axis::embedding,
                          Axis::position_embedding, Axis::world})
    if (axes_[span.axis] == QLatin1String(accrue::to_string(axis).data())) {
      accrue::RankList group = grid_.group(axis, rank);
      return group.size() > 1 ? group : accrue::RankList{};
    }
  return {};
}

/// Ranks make the same calls in the same order, so that the n-th of one is the n-th of the others.
void SyncTimeline::join(std::int64_t rank, const accrue::RankList& group, const SyncSpan& span) {
  auto& [microStep, made] = calls_[{rank, span.axis, span.op}];
  if (microStep != span.microStep) std::tie(microStep, made) = std::pair(span.microStep, std::int64_t{0});
  const auto call = open_.try_emplace({span.microStep, group.front(), span.axis, span.op, made++}).first;
  Begun& begun = call->second;
  begun.emplace_back(rank, span);
  if (begun.size() < group.size()) {
    if (open_.size() > mostOpen) open_.erase(open_.begin());
    return;
  }
  double last = span.begin;
  double end = span.end;
  for (const auto& [each, its] : begun) {
    last = std::max(last, its.begin);
    end = std::min(end, its.end);
  }
  // None ends before all have begun; where it seems so, these are not one call.
  for (const auto& [each, its] : begun) lanes_[each].meet(its, last <= end ? last : its.begin);
  open_.erase(call);
}

/// A message is two spans: one where it is sent, one where it is received.
void SyncTimeline::count(std::int64_t rank, const SyncSpan& span) {
  const bool reduces = ops_[span.op] == QLatin1String("all_reduce") || ops_[span.op] == QLatin1String("reduce_scatter");
  if (reduces && axes_[span.axis] == QLatin1String("data")) {
    auto& [newest, number] = reducing_[rank];
    if (span.microStep > newest) ++number;
    newest = std::max(newest, span.microStep);
    reducedBytes_ += span.bytes;
  }
  if (ops_[span.op] == QLatin1String("send")) ++messages_;
  if (!isMessage(span)) ++collectives_;
  bytes_ += span.bytes;
  largestBytes_ = std::max(largestBytes_, span.bytes);
}

bool SyncTimeline::isMessage(const SyncSpan& span) const {
  return ops_[span.op] == QLatin1String("send") || ops_[span.op] == QLatin1String("receive");
}

std::int64_t SyncTimeline::reducingMicroSteps() const {
  std::int64_t most = 0;
  for (const auto& [rank, reducing] : reducing_) most = std::max(most, reducing.second);
  return most;
}

std::int64_t SyncTimeline::bytesIfReduced(std::int64_t microSteps) const {
  const std::int64_t times = reducingMicroSteps();
  if (times == 0) return bytes_;
  const double each = static_cast<double>(reducedBytes_) / static_cast<double>(times);
  return bytes_ - reducedBytes_ + static_cast<std::int64_t>(std::llround(each * static_cast<double>(microSteps)));
}

void SyncTimeline::clear() {
  const accrue::RankGrid grid = grid_;
  *this = {};
  grid_ = grid;
}

void SyncTimeline::rewind(std::int64_t microStep) {
  collectives_ = messages_ = bytes_ = largestBytes_ = reducedBytes_ = 0;
  reducing_.clear();
  open_.clear();
  calls_.clear();
  for (auto& [rank, lane] : lanes_) {
    lane.truncate(microStep);
    for (const SyncSpan& span : lane.sync) count(rank, span);
  }
}

std::vector<std::uint8_t> SyncTimeline::shownAxes() const {
  std::vector<std::uint8_t> order(axes_.size());
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  const auto place = [this](std::uint8_t axis) {
    static const QStringList first{QStringLiteral("data"), QStringLiteral("tensor"), QStringLiteral("pipeline")};
    const auto at = first.indexOf(axes_[axis]);
    return at < 0 ? first.size() : at;
  };
  std::ranges::stable_sort(order, {}, place);
  return order;
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
