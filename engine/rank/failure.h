// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/run/base/result.h"

namespace accrue {

/// Returns the exception being handled as an Error: a lost peer, out of memory, or internal. Call it in a catch block.
Error current_failure();

}  // namespace accrue
