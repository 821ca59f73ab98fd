// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/run/result.h"

namespace accrue {

/// The exception in flight as an Error: a lost peer, memory that is not there, or something of ours (internal).
/// To be called in a catch block.
Error current_failure();

}  // namespace accrue
