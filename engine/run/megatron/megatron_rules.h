// SPDX-License-Identifier: Apache-2.0
// What holds between the fields of the plug-in, and between them and the model.
#pragma once

#include <vector>

#include "accrue/run/megatron_fields.h"

namespace accrue {

/// Every rule that the values break; each finding names both sides.
std::vector<Finding> check_megatron(const ResolvedMegatron& resolved, const MegatronFacts& facts);

}  // namespace accrue
