// SPDX-License-Identifier: Apache-2.0
// Samples of a split of indexed data, in the order in which a run reads them. The ranks train on them, and the studio
// describes them. Indices are loaded from the caches (index_cache.h), or built and saved there. If several processes
// want the same index, one builds it, and the others wait and load it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <variant>
#include <vector>

#include "accrue/run/data/bert_dataset.h"
#include "accrue/run/data/blend.h"
#include "accrue/run/data/gpt_dataset.h"
#include "accrue/run/data/t5_dataset.h"
#include "accrue/run/facts/indexed_corpus.h"
#include "accrue/run/facts/kept_index.h"

namespace accrue {

/// Source of a sample.
struct SampleOrigin {
  std::size_t set = 0;            ///< of CorpusSplit::sets
  std::int64_t item = 0;          ///< of the set's own samples
  std::vector<TextPiece> pieces;  ///< whole sentences of a BERT or a T5, before they are cut to the target
};

class IndexedSamples {
 public:
  /// `corpus` must come from plan_corpus() of the same spec. Errors: data, protocol, config, out_of_memory; disk if an
  /// index cannot be saved.
  static Result<IndexedSamples> open(const RunSpec& spec, const IndexedCorpus& corpus, DatasetSplit split,
                                     const std::filesystem::path& base_dir, IndexCaching caching = IndexCaching::keep);

  /// Number of samples, without those that data.consumed_samples skips for good.
  std::int64_t size() const { return samples_; }
  Result<SampleOrigin> origin(std::int64_t sample) const;
  /// For a model of the same kind. Errors: data for a sample that does not exist and for a token outside
  /// model.vocabulary.
  Result<GptItem> gpt(std::int64_t sample) const;
  Result<BertItem> bert(std::int64_t sample) const;
  Result<T5Item> t5(std::int64_t sample) const;

 private:
  using Dataset = std::variant<GptDataset, BertDataset, T5Dataset>;
  struct Place {
    std::size_t set;
    std::int64_t item;
  };
  Result<Place> place(std::int64_t sample) const;

  std::vector<Dataset> sets_;
  BlendIndex blend_;  ///< of several sets
  std::int64_t samples_ = 0;
  std::int64_t consumed_ = 0;
  std::int64_t vocabulary_ = 0;
};

}  // namespace accrue
