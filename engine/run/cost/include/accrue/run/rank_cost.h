// SPDX-License-Identifier: Apache-2.0
// What each rank of a grid holds and sends, from a spec alone: bytes by kind, micro-steps in flight, bytes by axis. The
// ranks of a stage are alike, so a cost is worked out once a stage. After a run the ranks' own counts stand beside
// these figures (event "measured").
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "accrue/run/rank_grid.h"
#include "accrue/run/run_spec.h"

namespace accrue {

/// What a rank gives to the calls of one group, in bytes of payload as the communicators count them.
struct AxisTraffic {
  double all_reduced = 0;
  double scattered = 0;  ///< all parts
  double gathered = 0;   ///< its own part
  double sent = 0;       ///< messages
  /// Adds what one call of that name ("all_reduce", "send", ...) takes of this rank.
  void add(std::string_view op, double bytes);
  AxisTraffic& operator+=(const AxisTraffic& other);
  AxisTraffic operator*(double times) const;
  /// The least bytes that leave a rank of a group of that many: 2 (n - 1) / n of what is all-reduced, (n - 1) / n of
  /// what is scattered, n - 1 times what is gathered.
  std::int64_t wire_bytes(std::int64_t ranks) const;
};

/// Axes share a communicator where their groups are the same: the axis whose name it bears.
Axis carrier_of(Axis axis, const RankGrid& grid);

struct RankCost {
  // Bytes held.
  std::int64_t parameters = 0;   ///< with the padding of the flat layout
  std::int64_t gradients = 0;    ///< likewise
  std::int64_t optimizer = 0;    ///< masters and moments
  std::int64_t activations = 0;  ///< that forwards keep for backwards still to come, at their most
  /// Working memory of one operation, messages on their way, and what a divided model's final weights are gathered in.
  std::int64_t buffers = 0;
  std::int64_t process = 0;  ///< a rank before it holds anything
  std::int64_t total() const { return parameters + gradients + optimizer + activations + buffers + process; }

  /// The stash: most forwards of one micro-step on one chunk whose backward is still to come.
  std::int64_t chunks_in_flight = 0;
  /// Bytes that leave the rank in one update of a full window, by the axis whose name the communicator bears.
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
  std::int64_t process = 0;      ///< a rank before it holds anything
  std::int64_t total() const { return parameters + gradients + optimizer + activations + buffers + process; }
  bool operator==(const MemoryEstimate&) const = default;
};

/// By pipeline stage. Empty where the model cannot be divided as the spec says (check_share()).
std::vector<RankCost> stage_costs(const RunSpec& spec);
/// By rank, in the order of the grid. Likewise.
std::vector<RankCost> rank_costs(const RunSpec& spec);

}  // namespace accrue
