// SPDX-License-Identifier: Apache-2.0
// Generated samples for BERT and T5: sentences of the synthetic language, masked as the models require.
#pragma once

#include <cstdint>
#include <memory>

#include "accrue/data/data_source.h"

namespace accrue {

/// Makes a source of facts.samples and, after them, facts.validation_samples samples of one model kind, all with
/// equally many items (synthetic_items()). The special tokens are the last ones of the vocabulary.
std::unique_ptr<DataSource> make_synthetic_sentences(std::uint64_t seed, const ModelSpec& model,
                                                     const DataFacts& facts);

}  // namespace accrue
