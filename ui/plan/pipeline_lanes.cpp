// SPDX-License-Identifier: GPL-3.0-or-later
#include "pipeline_lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "kit/number_text.h"
#include "series/run_series.h"

namespace accrue::ui {

namespace {

/// Number of windows before the newest that some rank may not have reported yet.
constexpr std::int64_t windowsOnTheWay = 8;

/// Micro-steps (first, last] of a window; empty if its update or the previous one is unknown.
std::optional<std::pair<std::int64_t, std::int64_t>> microStepsOf(const RunSeries& run, std::int64_t update) {
  const ClockTable& clocks = run.series(Metric::updateLoss).clocks();
  const std::size_t at = clocks[Clock::update].lowerBound(static_cast<double>(update));
  const auto number = [&](std::size_t i, Clock clock) { return std::llround(clocks[clock][i]); };
  if (at >= clocks.size() || number(at, Clock::update) != update) return {};
  if (at == 0)
    return update == 1 ? std::optional(std::pair(std::int64_t{0}, number(0, Clock::microStep))) : std::nullopt;
  if (number(at - 1, Clock::update) != update - 1) return {};
  return std::pair(number(at - 1, Clock::microStep), number(at, Clock::microStep));
}

/// Time at which a lane begins the micro-steps after this one.
double beginAfter(const Lane& lane, std::int64_t microStep) {
  const auto after = std::upper_bound(lane.micro.begin(), lane.micro.end(), microStep,
                                      [](std::int64_t m, const MicroPlace& place) { return m < place.microStep; });
  return after == lane.micro.end() ? std::numeric_limits<double>::infinity() : after->begin;
}

template <typename Take>
void spansWithin(const SpanTrack& spans, double from, double to, Take take) {
  auto span = std::lower_bound(spans.begin(), spans.end(), from,
                               [](const ComputeSpan& each, double t) { return each.begin < t; });
  for (; span != spans.end() && span->begin < to; ++span) take(*span);
}

}  // namespace

double MeasuredPipeline::end() const {
  double last = timeline.end();
  for (const auto& stage : steps)
    for (const auto& [begin, end] : stage) last = std::max(last, end);
  return last;
}

PipelinePace MeasuredPipeline::pace(std::int64_t stages) const {
  PipelinePace pace{0.0, 0.0};
  for (const auto& lane : timeline.lanes)
    for (const PipelineBlock& block : lane)
      (block.action == PipelineAction::forward ? pace.forward : pace.backward) += block.end - block.begin;
  const double parts = static_cast<double>(std::max<std::int64_t>(micro_steps * stages, 1));
  return {pace.forward / parts, pace.backward / parts};
}

std::optional<MeasuredPipeline> measuredPipeline(const RunSeries& run, std::int64_t update, std::int64_t replica,
                                                 std::int64_t tensor) {
  const auto window = microStepsOf(run, update);
  if (!window) return {};
  const auto [before, last] = *window;
  MeasuredPipeline measured{.update = update, .micro_steps = last - before};
  std::map<std::int64_t, const Lane*> stages;
  std::int64_t count = 0;
  for (const auto& [rank, at] : run.places()) {
    if (at.data != replica || at.tensor != tensor) continue;
    count = std::max(count, at.pipeline + 1);
    const auto lane = run.timeline().lanes().find(rank);
    if (lane != run.timeline().lanes().end()) stages[at.pipeline] = &lane->second;
  }
  if (stages.empty()) return {};
  double origin = std::numeric_limits<double>::infinity();
  for (const auto& [stage, lane] : stages) origin = std::min(origin, beginAfter(*lane, before));
  std::int64_t chunks = 0;
  measured.timeline.lanes.resize(static_cast<std::size_t>(count));
  measured.steps.resize(measured.timeline.lanes.size());
  for (const auto& [stage, lane] : stages) {
    const double from = beginAfter(*lane, before);
    const double to = beginAfter(*lane, last);
    auto& blocks = measured.timeline.lanes[static_cast<std::size_t>(stage)];
    const auto take = [&](PipelineAction action) {
      return [&, action](const ComputeSpan& span) {
        if (span.microStep <= before || span.microStep > last) return;
        blocks.push_back({action, span.microStep - before - 1, span.chunk, span.begin - origin, span.end() - origin});
        chunks = std::max<std::int64_t>(chunks, span.chunk + 1);
      };
    };
    spansWithin(lane->forward, from, to, take(PipelineAction::forward));
    spansWithin(lane->backward, from, to, take(PipelineAction::backward));
    std::ranges::sort(blocks, {}, &PipelineBlock::begin);
    auto& steps = measured.steps[static_cast<std::size_t>(stage)];
    spansWithin(lane->step, from, to,
                [&](const ComputeSpan& span) { steps.emplace_back(span.begin - origin, span.end() - origin); });
  }
  const std::size_t blocks = measured.timeline.blocks();
  if (blocks == 0) return {};
  measured.whole =
      blocks == 2 * measured.timeline.lanes.size() * static_cast<std::size_t>(measured.micro_steps * chunks);
  return measured;
}

std::optional<MeasuredPipeline> newestPipeline(const RunSeries& run, std::int64_t replica, std::int64_t tensor) {
  const std::int64_t newest = run.last().update;
  for (std::int64_t update = newest; update > 0 && update > newest - windowsOnTheWay; --update)
    if (auto measured = measuredPipeline(run, update, replica, tensor); measured && measured->whole) return measured;
  return {};
}

void PipelinePlanner::plan(const PipelineShape& shape, const PipelinePace& pace) {
  if (wanted_ == Wish{shape, pace}) return;
  wanted_ = Wish{shape, pace};
  if (!working_) start();
}

void PipelinePlanner::start() {
  working_ = true;
  auto work = [wish = *wanted_] {
    PlannedPipeline planned{.shape = wish.shape, .pace = wish.pace};
    const PipelineShape& shape = wish.shape;
    const double blocks = 2.0 * static_cast<double>(shape.stages) * static_cast<double>(shape.micro_steps) *
                          static_cast<double>(shape.chunks);
    if (blocks > static_cast<double>(most_blocks)) {
      planned.problem =
          tr("%1 operations are too many to draw; at most %2 are. Fewer micro-steps, stages or chunks help.")
              .arg(groupedNumber(std::llround(blocks)), groupedNumber(most_blocks));
      return planned;
    }
    auto timeline = pipeline_timeline(shape, wish.pace);
    if (timeline)
      planned.timeline = std::move(*timeline);
    else
      planned.problem = QString::fromStdString(timeline.error().message);
    return planned;
  };
  jobs_.run(std::move(work), [this, wish = *wanted_](PlannedPipeline planned) {
    working_ = false;
    planned_ = wish;
    result_ = std::move(planned);
    Q_EMIT finished();
    if (!isCurrent() && !working_) start();
  });
}

}  // namespace accrue::ui
