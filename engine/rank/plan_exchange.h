// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "accrue/comm/communicator.h"
#include "accrue/run/run_plan.h"

namespace accrue {

/// Rank 0's text, or rank 0's error, on every rank. Collective: the axis.
Result<std::string> share_text(Communicator& axis, const Result<std::string>& made);

/// Rank 0's order, or rank 0's error, on every rank, with the clock of this rank's host. Collective: the axis.
Result<RunOrder> share_order(Communicator& axis, const Result<RunOrder>& made);

}  // namespace accrue
