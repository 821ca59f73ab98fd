// SPDX-License-Identifier: Apache-2.0
// The training, validation and test data of a GPT, a BERT or a T5 from indexed datasets, blended by weight, under
// Megatron's names: of a GPT "text", one token more than a sequence. Thread: any.
#pragma once

#include <vector>

#include "accrue/megatron/megatron_lm_plugin.h"

namespace accrue::megatron {

/// Checks names and options. Errors: throws std::invalid_argument for those that cannot be used here.
void check_names(const MegatronLMDummyDataLoader& loader);

/// `samples`: how many of each are needed; a split that has nothing, or of which nothing is needed, has 0 samples.
/// `model`: of what kind it is, and how many tokens its samples have. Errors: throws std::invalid_argument with the
/// data's error.
std::vector<MegatronDataset> indexed_text(const MegatronLMDummyDataLoader& loader, const ModelSpec& model,
                                          const std::vector<std::int64_t>& samples);

}  // namespace accrue::megatron
