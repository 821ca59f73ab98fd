// SPDX-License-Identifier: Apache-2.0
// Whether the losses of two runs can be compared: they are of the same kind, on the same data.
#pragma once

#include <string>

#include "accrue/run/run_spec.h"

namespace accrue {

/// The first key because of which the losses of two specs mean different things; empty if they can be compared.
std::string loss_difference(const RunSpec& one, const RunSpec& other);

}  // namespace accrue
