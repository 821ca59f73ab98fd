// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/window/pipeline_timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace accrue {
namespace {

/// A tensor between stages: receiver, whether forward, micro-step, receiver's chunk.
using Arrival = std::tuple<std::int64_t, bool, std::int64_t, std::int64_t>;

/// One stage, followed along its list.
struct Clock {
  std::size_t next = 0;
  double time = 0.0;
};

/// Whether a lane has a block that overlaps this one. A lane's blocks ascend and do not overlap, so the first that ends
/// after this one's begin decides.
bool computes_during(const std::vector<PipelineBlock>& lane, const PipelineBlock& block) {
  const auto later = std::ranges::upper_bound(lane, block.begin, {}, &PipelineBlock::end);
  return later != lane.end() && later->begin < block.end;
}

}  // namespace

double PipelineTimeline::begin() const {
  double first = std::numeric_limits<double>::infinity();
  for (const auto& lane : lanes)
    if (!lane.empty()) first = std::min(first, lane.front().begin);
  return blocks() == 0 ? 0.0 : first;
}

double PipelineTimeline::end() const {
  double last = 0.0;
  for (const auto& lane : lanes)
    if (!lane.empty()) last = std::max(last, lane.back().end);
  return last;
}

double PipelineTimeline::bubble() const {
  double busy = 0.0;
  for (const auto& lane : lanes)
    for (const PipelineBlock& block : lane) busy += block.end - block.begin;
  // 1 - busy time / (stages * duration).
  const double all = (end() - begin()) * static_cast<double>(lanes.size());
  return all > 0.0 ? 1.0 - busy / all : 0.0;
}

std::int64_t PipelineTimeline::stash(std::size_t stage) const {
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const PipelineBlock& block : lanes[stage]) {
    // A forward adds an activation, its backward frees it.
    now += block.action == PipelineAction::forward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

std::size_t PipelineTimeline::blocks() const {
  std::size_t count = 0;
  for (const auto& lane : lanes) count += lane.size();
  return count;
}

Result<PipelineTimeline> pipeline_timeline(const PipelineShape& shape, const PipelinePace& pace) {
  const auto lists = pipeline_schedule(shape);
  if (!lists) return tl::unexpected(lists.error());
  PipelineTimeline timeline;
  timeline.lanes.resize(lists->size());
  std::vector<Clock> clocks(lists->size());
  std::map<Arrival, double> arrived;
  // A stage runs until it needs an unsent tensor; the lists have a common order, so some stage can always move.
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < lists->size(); ++s) {
      Clock& clock = clocks[s];
      for (; clock.next < (*lists)[s].size(); ++clock.next, moved = true) {
        const PipelineOperation& operation = (*lists)[s][clock.next];
        const auto [action, micro_step, chunk, peer] = operation;
        const bool onward = action == PipelineAction::send_output;
        if (action == PipelineAction::forward || action == PipelineAction::backward) {
          const double whole = action == PipelineAction::forward ? pace.forward : pace.backward;
          // A chunk has 1 / v of a stage's blocks.
          const double end = clock.time + whole / static_cast<double>(shape.chunks);
          timeline.lanes[s].push_back({action, micro_step, chunk, clock.time, end});
          clock.time = end;
        } else if (onward || action == PipelineAction::send_gradient) {
          const std::int64_t part = chunk * shape.stages + static_cast<std::int64_t>(s) + (onward ? 1 : -1);
          arrived[{peer, onward, micro_step, part / shape.stages}] = clock.time;
        } else {
          const auto found =
              arrived.find({static_cast<std::int64_t>(s), action == PipelineAction::receive_input, micro_step, chunk});
          if (found == arrived.end()) break;
          // Transfers take no time: the receiver waits only for the computation.
          clock.time = std::max(clock.time, found->second);
        }
      }
    }
  }
  return timeline;
}

std::vector<std::vector<std::int64_t>> stages_at_work(const PipelineTimeline& timeline) {
  std::vector<std::vector<std::int64_t>> counts;
  for (const auto& lane : timeline.lanes) {
    auto& of_lane = counts.emplace_back();
    for (const PipelineBlock& block : lane)
      of_lane.push_back(
          std::ranges::count_if(timeline.lanes, [&](const auto& other) { return computes_during(other, block); }));
  }
  return counts;
}

}  // namespace accrue
