// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "accrue/comm/communicator.h"
#include "accrue/run/preflight/run_order.h"

namespace accrue {

/// Returns rank 0's text, or rank 0's error, on every rank. Collective: the axis.
Result<std::string> share_text(Communicator& axis, const Result<std::string>& made);

/// Converts the run's origin from rank 0's clock to this rank's. Hosts have different clocks, which a barrier compares;
/// ranks of one host share one and need no comparison. Collective: the axis.
std::int64_t origin_here(Communicator& axis, std::int64_t origin_ns);

/// Returns rank 0's order, or rank 0's error, on every rank, with the clock of this rank's host. Collective: the axis.
Result<RunOrder> share_order(Communicator& axis, const Result<RunOrder>& made);

}  // namespace accrue
