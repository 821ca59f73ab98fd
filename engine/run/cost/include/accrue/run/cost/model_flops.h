// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "accrue/run/fields/spec.h"

namespace accrue {

/// Floating-point operations of forward and backward of one sample. The formula is that of Megatron-LM's logger, which
/// counts half of a causal score matrix. 0 if there is no formula: for a T5 and for models without sequences.
double model_flops(const ModelSpec& model, std::int64_t tensor_ranks);

}  // namespace accrue
