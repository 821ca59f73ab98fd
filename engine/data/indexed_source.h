// SPDX-License-Identifier: Apache-2.0
// Samples of indexed datasets: what IndexedSamples cuts, as tensors.
#pragma once

#include <filesystem>
#include <memory>

#include "accrue/data/data_source.h"
#include "accrue/run/document_resets.h"
#include "accrue/run/indexed_samples.h"

namespace accrue {

/// A micro-batch of a GPT. Labels that do not count are -100: padding, and with data.mask_end_of_document what follows
/// the end of a document. Documents begin again where the spec says so.
Batch gpt_batch(std::span<const GptItem> items, const DataSpec& data, std::int64_t context);

/// Errors: those of plan_corpus() and IndexedSamples::open().
Result<std::unique_ptr<DataSource>> make_indexed_source(const RunSpec& spec, const std::filesystem::path& base_dir);

}  // namespace accrue
