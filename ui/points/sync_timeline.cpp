// SPDX-License-Identifier: GPL-3.0-or-later
#include "sync_timeline.h"

#include <QStringList>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kit/text.h"

namespace accrue::ui {

namespace {

/// Maximum number of calls with missing reports; more come from lost traces.
constexpr std::size_t mostOpen = 4096;

/// Scales a count by a fraction.
std::int64_t scaled(std::int64_t count, double part) {
  return static_cast<std::int64_t>(std::llround(static_cast<double>(count) * part));
}

}  // namespace

void SyncTimeline::take(std::int64_t rank, const accrue::Operations& body) {
  Lane& lane = lanes_[rank];
  for (std::size_t i = 0; i < body.kind.size(); ++i)
    lane.push(body.kind[i], {seconds(body.begin_ns[i]), static_cast<float>(body.end_ns[i] - body.begin_ns[i]) * 1e-9F,
                             static_cast<std::int32_t>(body.chunk[i]), body.micro_step[i]});
  for (const SyncSpan& gone : lane.condense()) count(past_[rank], gone);
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
                  .op = nameIndex(ops_, body.op[i]),
                  .purpose = body.purpose[i]};
    const accrue::RankList group = groupOf(rank, span);
    span.reducesGradients = accrue::reduces_gradients(span.purpose, body.axis[i], body.op[i]);
    span.transfer = group.empty() ? span.begin : span.end;
    lane.pushSync(span);
    count(counts_[rank], span);
    if (!group.empty()) join(rank, group, span);
  }
}

/// Ranks that a call waits for; empty if none is known.
accrue::RankList SyncTimeline::groupOf(std::int64_t rank, const SyncSpan& span) const {
  if (rank < 0 || rank >= grid_.world() || isMessage(span)) return {};
  using accrue::Axis;
  for (const Axis axis : {Axis::data, Axis::pipeline, Axis::tensor, Axis::context, Axis::model, Axis::embedding,
                          Axis::position_embedding, Axis::world})
    if (axes_[span.axis] == fromView(accrue::to_string(axis))) {
      accrue::RankList group = grid_.group(axis, rank);
      return group.size() > 1 ? group : accrue::RankList{};
    }
  return {};
}

/// Ranks make the same calls in the same order, so the n-th of one is the n-th of the others.
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
  // None ends before all have begun; if one seems to, these are different calls.
  for (const auto& [each, its] : begun) lanes_[each].meet(its, last <= end ? last : its.begin);
  open_.erase(call);
}

/// A message is two spans: one at the sender, one at the receiver.
void SyncTimeline::count(SyncCounts& counts, const SyncSpan& span) {
  if (span.reducesGradients) {
    ++counts.reductions;
    if (span.microStep > counts.newestReducing) ++counts.reducingMicroSteps;
    counts.newestReducing = std::max(counts.newestReducing, span.microStep);
    counts.reducedBytes += span.bytes;
  }
  sends_aside_ = sends_aside_ || span.isAside();
  says_purposes_ = says_purposes_ && span.purpose != accrue::CollectivePurpose::unknown;
  if (ops_[span.op] == QLatin1String("send")) ++counts.messages;
  if (!isMessage(span)) ++counts.collectives;
  counts.bytes += span.bytes;
  if (!span.isAside()) largestBytes_ = std::max(largestBytes_, span.bytes);
}

std::int64_t SyncTimeline::total(std::int64_t SyncCounts::*count) const {
  std::int64_t sum = 0;
  for (const auto& [rank, counts] : counts_) sum += counts.*count;
  return sum;
}

bool SyncTimeline::isMessage(const SyncSpan& span) const {
  return ops_[span.op] == QLatin1String("send") || ops_[span.op] == QLatin1String("receive");
}

std::int64_t SyncTimeline::reducingMicroSteps() const {
  std::int64_t most = 0;
  for (const auto& [rank, counts] : counts_) most = std::max(most, counts.reducingMicroSteps);
  return most;
}

std::int64_t SyncTimeline::reductions() const {
  return counts_.empty() ? 0 : counts_.begin()->second.reductions;
}

std::int64_t SyncTimeline::bytesIfReduced(std::int64_t microSteps) const {
  const std::int64_t times = reducingMicroSteps();
  if (times == 0) return 0;
  const double each = static_cast<double>(reducedBytes()) / static_cast<double>(times);
  return std::llround(each * static_cast<double>(microSteps));
}

void SyncTimeline::clear() {
  const accrue::RankGrid grid = grid_;
  *this = {};
  grid_ = grid;
}

void SyncTimeline::pauseAt(double seconds) {
  for (auto& [rank, lane] : lanes_) lane.pauseAt(seconds);
}

void SyncTimeline::rewind(std::int64_t microStep) {
  open_.clear();
  calls_.clear();
  for (auto& [rank, lane] : lanes_) {
    SyncCounts& counts = past_[rank];
    if (const std::int64_t before = lane.condensedTo(); microStep < before) {
      const double part = static_cast<double>(std::max<std::int64_t>(microStep, 0)) / static_cast<double>(before);
      for (const auto count : {&SyncCounts::collectives, &SyncCounts::messages, &SyncCounts::bytes,
                               &SyncCounts::reductions, &SyncCounts::reducedBytes, &SyncCounts::reducingMicroSteps})
        counts.*count = scaled(counts.*count, part);
      counts.newestReducing = std::min(counts.newestReducing, microStep);
    }
    lane.truncate(microStep);
    counts_[rank] = counts;
    for (const SyncSpan& span : lane.sync) count(counts_[rank], span);
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
