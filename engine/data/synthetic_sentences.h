// SPDX-License-Identifier: Apache-2.0
// Made samples for BERT and T5: sentences of the synthetic language, masked as the models expect it.
#pragma once

#include <cstdint>
#include <memory>

#include "accrue/data/data_source.h"

namespace accrue {

/// A source of facts.samples and, after them, facts.validation_samples samples of one model kind, all of as many items
/// (synthetic_items()). The special tokens are the vocabulary's last ones.
std::unique_ptr<DataSource> make_synthetic_sentences(std::uint64_t seed, const ModelSpec& model,
                                                     const DataFacts& facts);

}  // namespace accrue
