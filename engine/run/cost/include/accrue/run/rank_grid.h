// SPDX-License-Identifier: Apache-2.0
// Ranks on a grid of axes: tensor fastest, then context, then data, pipeline slowest, which is Megatron's order. The
// only place where the degrees meet the world size.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "accrue/run/run_spec.h"

namespace accrue {

/// What the ranks of a group have in common. Along one of the first four, a group's ranks differ in that coordinate
/// alone; model is tensor x pipeline; embedding is the first and the last stage of a pipeline, position_embedding its
/// first; the stage at a split belongs to both.
enum class Axis { data, pipeline, tensor, context, model, embedding, position_embedding, world };
std::string_view to_string(Axis axis);  ///< "data", "pipeline", ..., "position_embedding", "world"

struct GridCoordinate {
  std::int64_t data = 0;
  std::int64_t pipeline = 0;
  std::int64_t tensor = 0;
  std::int64_t context = 0;
  bool operator==(const GridCoordinate&) const = default;
};

/// The ranks of a group, ascending.
using RankList = std::vector<std::int64_t>;

struct RankGrid {
  std::int64_t data = 1;
  std::int64_t pipeline = 1;
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t split = 0;  ///< first stage of a decoder that embeds tokens of its own; 0: there is none

  std::int64_t world() const { return data * pipeline * tensor * context; }
  /// Ranks in each group of the axis.
  std::int64_t size(Axis axis) const;
  GridCoordinate coordinate(std::int64_t rank) const;
  std::int64_t rank(const GridCoordinate& at) const;
  /// The group along axis that rank belongs to. Empty where it belongs to none: an embedding group leaves stages out.
  RankList group(Axis axis, std::int64_t rank) const;
  /// All groups along axis, by their first rank. No rank is in two of them.
  std::vector<RankList> groups(Axis axis) const;
  bool operator==(const RankGrid&) const = default;
};

/// The stages that have the embeddings, ascending.
RankList embedding_stages(const RankGrid& grid);
/// Those of them that look up positions.
RankList position_stages(const RankGrid& grid);

RankGrid make_grid(const RunSpec& spec);

}  // namespace accrue
