// SPDX-License-Identifier: Apache-2.0
// Ranks on a grid of axes in Megatron's order: tensor fastest, then context, then data, pipeline slowest. The only
// place that relates the degrees to the world size.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "accrue/run/fields/spec.h"

namespace accrue {

/// Direction of a group of ranks. Along data, pipeline, tensor and context, a group's ranks differ in that coordinate
/// alone. model is tensor x pipeline. embedding is the first and last pipeline stage, position_embedding the first; the
/// stage at a split belongs to both.
enum class Axis { data, pipeline, tensor, context, model, embedding, position_embedding, world };
std::string_view to_string(Axis axis);  ///< "data", "pipeline", ..., "position_embedding", "world"

struct GridCoordinate {
  std::int64_t data = 0;
  std::int64_t pipeline = 0;
  std::int64_t tensor = 0;
  std::int64_t context = 0;
  bool operator==(const GridCoordinate&) const = default;
};

/// Ranks of a group, ascending.
using RankList = std::vector<std::int64_t>;

struct RankGrid {
  std::int64_t data = 1;
  std::int64_t pipeline = 1;
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t split = 0;  ///< first stage of a decoder that embeds its own tokens; 0: none

  std::int64_t world() const { return data * pipeline * tensor * context; }
  /// Ranks in each group of the axis.
  std::int64_t size(Axis axis) const;
  GridCoordinate coordinate(std::int64_t rank) const;
  std::int64_t rank(const GridCoordinate& at) const;
  /// Returns the group along `axis` of a rank. Empty if it has none: an embedding group leaves stages out.
  RankList group(Axis axis, std::int64_t rank) const;
  /// Returns all groups along `axis`, ordered by first rank. No rank is in two of them.
  std::vector<RankList> groups(Axis axis) const;
  bool operator==(const RankGrid&) const = default;
};

/// Stages that hold the embeddings, ascending.
RankList embedding_stages(const RankGrid& grid);
/// Embedding stages that look up positions.
RankList position_stages(const RankGrid& grid);

RankGrid make_grid(const RunSpec& spec);

}  // namespace accrue
