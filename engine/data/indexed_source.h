// SPDX-License-Identifier: Apache-2.0
// Samples of indexed datasets: the output of IndexedSamples as tensors.
#pragma once

#include <filesystem>
#include <memory>

#include "accrue/data/data_source.h"
#include "accrue/run/data/document_resets.h"
#include "accrue/run/facts/indexed_samples.h"

namespace accrue {

/// Makes a micro-batch of a GPT. Ignored labels are -100: padding, and with data.mask_end_of_document the label at each
/// end of a document. Documents restart positions or attention if the spec says so.
Batch gpt_batch(std::span<const GptItem> items, const DataSpec& data, std::int64_t context);

/// `corpus` must come from plan_corpus() of the same spec. Errors: those of IndexedSamples::open().
Result<std::unique_ptr<DataSource>> make_indexed_source(const RunSpec& spec, const IndexedCorpus& corpus,
                                                        const std::filesystem::path& base_dir);

}  // namespace accrue
