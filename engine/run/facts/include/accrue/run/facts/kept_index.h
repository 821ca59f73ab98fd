// SPDX-License-Identifier: Apache-2.0
// Indices that are loaded from a folder, or built and saved there. If several processes want the same index, one builds
// it, and the others wait and load it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "accrue/run/data/dataset_sidecar.h"
#include "accrue/run/data/index_cache.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

/// Whether indices are written.
enum class IndexCaching {
  keep,      ///< built and saved if the caches lack them
  read_only  ///< only built in memory
};

/// Returns the identity of the tokenizer under Megatron-LM's name, so that caches are shared with it. Its null
/// tokenizer is for tokens without a known text: it has a number for each, and one more for the end of a document.
TokenizerIdentity tokenizer_of(const std::optional<DatasetSidecar>& sidecar, const ModelSpec& model);

/// Mark of PREFIX.idx, from which every index of the corpus follows. Errors: data.
Result<CorpusMark> mark_of_corpus(const std::filesystem::path& prefix);

/// Errors: disk, protocol, those of `build`.
Result<GptIndex> kept_index(const std::filesystem::path& folder, const DatasetIdentity& identity,
                            const std::function<Result<GptIndex>()>& build, IndexCaching caching = IndexCaching::keep);
Result<BlendIndex> kept_index(const std::filesystem::path& folder, const BlendIdentity& identity,
                              const std::function<Result<BlendIndex>()>& build,
                              IndexCaching caching = IndexCaching::keep);
/// Returns the index of a BERT or a T5. Errors: as kept_index().
Result<IndexArray> kept_sentence_index(const std::filesystem::path& folder, const DatasetIdentity& identity,
                                       const std::function<Result<IndexArray>()>& build,
                                       IndexCaching caching = IndexCaching::keep);

}  // namespace accrue
