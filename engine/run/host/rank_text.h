// SPDX-License-Identifier: Apache-2.0
// How messages name ranks, and where they say a rank is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accrue/run/rank_grid.h"
#include "accrue/run/run_event.h"

namespace accrue {

/// "Rank 3", where the ranks share a model with its place: "Rank 3 (data 0, stage 1, tensor 1)".
std::string name_of(const RankGrid& grid, std::size_t rank);

/// "Ranks 0, 1 and 3"; `initial`: 'r' inside a sentence.
std::string list_ranks(const std::vector<std::size_t>& ranks, char initial = 'R');

/// " in forward, update 3, micro-step 12", or " in backward of micro-step 12, chunk 1, update 3".
std::string place_of(const Heartbeat& last);

/// ", last seen in backward of micro-step 7, chunk 0", or the phase with what is known of it; of the last heartbeat. An
/// operation of a micro-step whose update is known to have ended (`done`) is not named: the rank has gone on since.
std::string doing_text(const Heartbeat& last, const std::optional<Update>& done);

}  // namespace accrue
