// SPDX-License-Identifier: Apache-2.0
// Items of the samplers of BERT and T5 as batches.
#pragma once

#include <span>

#include "accrue/models/batch.h"
#include "accrue/run/data/bert_dataset.h"
#include "accrue/run/data/t5_dataset.h"

namespace accrue {

/// Makes one row per item, in order; all of one length. Errors: throws std::invalid_argument if lengths differ.
Batch bert_batch(std::span<const BertItem> items);
Batch t5_batch(std::span<const T5Item> items);

}  // namespace accrue
