// SPDX-License-Identifier: Apache-2.0
// Ranks on a grid of axes: tensor fastest, then pipeline, then data. The only place where the degrees meet the world
// size.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "accrue/run/run_spec.h"

namespace accrue {

enum class Axis { data, pipeline, tensor };
std::string_view to_string(Axis axis);  ///< "data", "pipeline", "tensor"

struct GridCoordinate {
  std::int64_t data = 0;
  std::int64_t pipeline = 0;
  std::int64_t tensor = 0;
  bool operator==(const GridCoordinate&) const = default;
};

struct RankGrid {
  std::int64_t data = 1;
  std::int64_t pipeline = 1;
  std::int64_t tensor = 1;

  std::int64_t world() const { return data * pipeline * tensor; }
  std::int64_t size(Axis axis) const;
  GridCoordinate coordinate(std::int64_t rank) const;
  std::int64_t rank(const GridCoordinate& at) const;
  /// The ranks of the group along axis that rank belongs to, ascending.
  std::vector<std::int64_t> group(Axis axis, std::int64_t rank) const;
  bool operator==(const RankGrid&) const = default;
};

RankGrid make_grid(const ParallelSpec& parallel);

}  // namespace accrue
