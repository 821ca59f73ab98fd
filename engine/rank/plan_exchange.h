// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "accrue/comm/communicator.h"
#include "accrue/run/run_order.h"

namespace accrue {

/// Rank 0's text, or rank 0's error, on every rank. Collective: the axis.
Result<std::string> share_text(Communicator& axis, const Result<std::string>& made);

/// The run's zero by this rank's clock, from that by rank 0's. Hosts have clocks of their own, which a barrier
/// compares; ranks of one host read the same one, and need no comparison. Collective: the axis.
std::int64_t origin_here(Communicator& axis, std::int64_t origin_ns);

/// Rank 0's order, or rank 0's error, on every rank, with the clock of this rank's host. Collective: the axis.
Result<RunOrder> share_order(Communicator& axis, const Result<RunOrder>& made);

}  // namespace accrue
