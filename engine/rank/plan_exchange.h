// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/comm/communicator.h"
#include "accrue/run/run_plan.h"

namespace accrue {

/// Rank 0's order, or rank 0's error, on every rank. Collective: the axis.
Result<RunOrder> share_order(Communicator& axis, const Result<RunOrder>& made);

}  // namespace accrue
