// SPDX-License-Identifier: Apache-2.0
// Memory and traffic of each rank of a grid, from a spec alone: bytes by kind, micro-steps in flight, bytes by axis.
// The ranks of a stage are alike, so each stage is computed once. After a run the ranks' own counts are shown beside
// these figures (event "measured").
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "accrue/run/cost/rank_grid.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

/// Payload that a rank gives to the calls of one group, in bytes, as the communicators count it.
struct AxisTraffic {
  double all_reduced = 0;
  double scattered = 0;  ///< all parts
  double gathered = 0;   ///< its own part
  double sent = 0;       ///< messages
  /// Adds the bytes of one call named `op` ("all_reduce", "send", ...) on this rank.
  void add(std::string_view op, double bytes);
  AxisTraffic& operator+=(const AxisTraffic& other);
  AxisTraffic operator*(double times) const;
  /// Minimum number of bytes that leave a rank of a group of n: 2 (n - 1) / n of all-reduced bytes, (n - 1) / n of
  /// scattered ones, n - 1 times the gathered ones.
  std::int64_t wire_bytes(std::int64_t ranks) const;
};

/// Axis whose communicator carries the calls of `axis`: axes with the same groups share one.
Axis carrier_of(Axis axis, const RankGrid& grid);

struct RankCost {
  // Bytes held.
  std::int64_t parameters = 0;   ///< with the padding of the flat layout
  std::int64_t gradients = 0;    ///< likewise
  std::int64_t optimizer = 0;    ///< masters and moments
  std::int64_t activations = 0;  ///< kept by forwards for later backwards, at the maximum
  /// Working memory of one operation, messages in flight, and buffers that gather a divided model's final weights.
  std::int64_t buffers = 0;
  std::int64_t process = 0;  ///< baseline of a rank process without data
  std::int64_t total() const { return parameters + gradients + optimizer + activations + buffers + process; }

  /// Stash: maximum number of forwards of one micro-step on one chunk whose backward is still to come.
  std::int64_t chunks_in_flight = 0;
  /// Bytes that leave the rank in one update of a full window, by the axis that names the communicator.
  std::array<std::int64_t, 8> wire = {};
  std::int64_t sent(Axis axis) const { return wire[static_cast<std::size_t>(axis)]; }
  bool operator==(const RankCost&) const = default;
};

struct MemoryEstimate {  ///< bytes per rank
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t activations = 0;  ///< of the micro-batches in flight
  std::int64_t buffers = 0;      ///< working memory of one operation
  std::int64_t process = 0;      ///< baseline of a rank process without data
  std::int64_t total() const { return parameters + gradients + optimizer + activations + buffers + process; }
  bool operator==(const MemoryEstimate&) const = default;
};

/// Costs by pipeline stage. Empty if the model cannot be divided as the spec says (check_share()).
std::vector<RankCost> stage_costs(const RunSpec& spec);
/// Costs by rank, in grid order. Empty in the same case.
std::vector<RankCost> rank_costs(const RunSpec& spec);

}  // namespace accrue
