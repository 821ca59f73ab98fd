// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace accrue {

/// Path of accrue-rank: $ACCRUE_RANK_PROGRAM if it is set, else the file beside this program.
std::string default_rank_program();

}  // namespace accrue
