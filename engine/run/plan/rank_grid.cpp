// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/rank_grid.h"

namespace accrue {

std::string_view to_string(Axis axis) {
  switch (axis) {
    case Axis::data:
      return "data";
    case Axis::pipeline:
      return "pipeline";
    case Axis::tensor:
      return "tensor";
  }
  return "";
}

std::int64_t RankGrid::size(Axis axis) const {
  switch (axis) {
    case Axis::data:
      return data;
    case Axis::pipeline:
      return pipeline;
    case Axis::tensor:
      return tensor;
  }
  return 1;
}

GridCoordinate RankGrid::coordinate(std::int64_t rank) const {
  return {.data = rank / (tensor * pipeline), .pipeline = rank / tensor % pipeline, .tensor = rank % tensor};
}

std::int64_t RankGrid::rank(const GridCoordinate& at) const {
  return (at.data * pipeline + at.pipeline) * tensor + at.tensor;
}

std::vector<std::int64_t> RankGrid::group(Axis axis, std::int64_t rank_of_member) const {
  GridCoordinate at = coordinate(rank_of_member);
  std::int64_t& moving = axis == Axis::data ? at.data : axis == Axis::pipeline ? at.pipeline : at.tensor;
  std::vector<std::int64_t> ranks;
  for (moving = 0; moving < size(axis); ++moving) ranks.push_back(rank(at));
  return ranks;
}

RankGrid make_grid(const ParallelSpec& parallel) {
  return {.data = parallel.data, .pipeline = parallel.pipeline, .tensor = parallel.tensor};
}

}  // namespace accrue
