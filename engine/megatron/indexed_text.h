// SPDX-License-Identifier: Apache-2.0
// The training, validation and test data of a GPT from indexed datasets, blended by weight: "text", one token more than
// a sequence. Thread: any.
#pragma once

#include <vector>

#include "accrue/megatron/megatron_lm_plugin.h"

namespace accrue::megatron {

/// `samples`: how many of each are needed; a split that has nothing, or of which nothing is needed, has 0 samples.
/// Errors: throws std::invalid_argument with the data's error.
std::vector<MegatronDataset> indexed_text(const MegatronLMDummyDataLoader& loader, std::int64_t sequence_length,
                                          const std::vector<std::int64_t>& samples);

}  // namespace accrue::megatron
