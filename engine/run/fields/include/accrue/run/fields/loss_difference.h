// SPDX-License-Identifier: Apache-2.0
// Whether the losses of two runs can be compared, which requires the same kind of loss on the same data.
#pragma once

#include <string>

#include "accrue/run/fields/spec.h"

namespace accrue {

/// Returns the first key that gives the losses of two specs different meanings; empty if they can be compared.
std::string loss_difference(const RunSpec& one, const RunSpec& other);

}  // namespace accrue
