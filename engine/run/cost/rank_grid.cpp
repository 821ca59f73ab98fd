// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/cost/rank_grid.h"

#include <algorithm>

#include "accrue/run/base/name_of.h"
#include "accrue/run/cost/model_share.h"

namespace accrue {

std::string_view to_string(Axis axis) {
  return name_of<Axis::world>(
      axis, {"data", "pipeline", "tensor", "context", "model", "embedding", "position_embedding", "world"});
}

std::int64_t RankGrid::size(Axis axis) const {
  return static_cast<std::int64_t>(group(axis, 0).size());  // rank 0 is on the first stage, which is in every group
}

// rank = t + T (c + C (d + D p)), for T tensor, C context and D data ranks; here its digits.
GridCoordinate RankGrid::coordinate(std::int64_t rank) const {
  return {.data = rank / (tensor * context) % data,
          .pipeline = rank / (tensor * context * data),
          .tensor = rank % tensor,
          .context = rank / tensor % context};
}

std::int64_t RankGrid::rank(const GridCoordinate& at) const {
  return at.tensor + tensor * (at.context + context * (at.data + data * at.pipeline));
}

RankList RankGrid::group(Axis axis, std::int64_t rank_of_member) const {
  if (axis == Axis::embedding || axis == Axis::position_embedding) {
    const RankList stages = group(Axis::pipeline, rank_of_member);
    RankList members;
    for (const std::int64_t stage : axis == Axis::embedding ? embedding_stages(*this) : position_stages(*this))
      members.push_back(stages[static_cast<std::size_t>(stage)]);
    return std::ranges::count(members, rank_of_member) > 0 ? members : RankList();
  }
  const GridCoordinate at = coordinate(rank_of_member);
  const bool all = axis == Axis::world;
  const bool model = axis == Axis::model;
  RankList ranks;
  for (std::int64_t rank = 0; rank < world(); ++rank) {
    const GridCoordinate other = coordinate(rank);
    // Two ranks are in one group if they agree in every coordinate along which the axis does not run.
    const bool together = (all || axis == Axis::data || other.data == at.data) &&
                          (all || axis == Axis::context || other.context == at.context) &&
                          (all || model || axis == Axis::pipeline || other.pipeline == at.pipeline) &&
                          (all || model || axis == Axis::tensor || other.tensor == at.tensor);
    if (together) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<RankList> RankGrid::groups(Axis axis) const {
  std::vector<RankList> found;
  for (std::int64_t rank = 0; rank < world(); ++rank) {
    RankList members = group(axis, rank);
    // Each group once: at its first rank.
    if (!members.empty() && members.front() == rank) found.push_back(std::move(members));
  }
  return found;
}

RankList position_stages(const RankGrid& grid) {
  RankList stages = {0};
  if (grid.split > 0 && grid.split < grid.pipeline) stages.push_back(grid.split);
  return stages;
}

// The first stage embeds, a decoder's first stage embeds its tokens, and the last needs the table for the logits.
RankList embedding_stages(const RankGrid& grid) {
  RankList stages = position_stages(grid);
  if (stages.back() < grid.pipeline - 1) stages.push_back(grid.pipeline - 1);
  return stages;
}

RankGrid make_grid(const RunSpec& spec) {
  const ParallelSpec& parallel = spec.parallel;
  return {.data = parallel.data,
          .pipeline = parallel.pipeline,
          .tensor = parallel.tensor,
          .split = split_part(spec.model, parallel.pipeline, parallel.split_stage.value_or(0))};
}

}  // namespace accrue
