// SPDX-License-Identifier: Apache-2.0
// Names and places of ranks in messages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accrue/run/cost/rank_grid.h"
#include "accrue/run/events/run_event.h"

namespace accrue {

/// Returns "Rank 3", or with its place if the ranks share a model: "Rank 3 (data 0, stage 1, tensor 1)".
std::string name_of(const RankGrid& grid, std::size_t rank);

/// Returns "Ranks 0, 1 and 3"; `initial`: 'r' inside a sentence.
std::string list_ranks(const std::vector<std::size_t>& ranks, char initial = 'R');

/// Returns " in forward, update 3, micro-step 12", or " in backward of micro-step 12, chunk 1, update 3".
std::string place_of(const Heartbeat& last);

/// Returns ", last seen in backward of micro-step 7, chunk 0", or the phase of the last heartbeat with its details. An
/// operation of a micro-step whose update is known to have ended (`done`) is not named: the rank has moved on since.
std::string doing_text(const Heartbeat& last, const std::optional<Update>& done);

}  // namespace accrue
