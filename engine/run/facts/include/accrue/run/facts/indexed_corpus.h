// SPDX-License-Identifier: Apache-2.0
// Input of a spec with data.kind = "indexed": the part of each dataset, its number of samples, and the blend.
// Everything comes from the headers of the files, so the cost does not grow with them. One exception: a BERT or a T5
// with a run in epochs counts the sentences. indexed_samples.h has the samples themselves.
//
// As in Megatron-LM, an index is made for the run: it holds at least the samples that the run trains on, with as many
// passes over the tokens as needed, and is read once, in order. Several datasets without weights are the exception:
// each gives the samples of one pass, and they are read again if the run needs more.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/data/dataset_sidecar.h"
#include "accrue/run/data/dataset_splits.h"
#include "accrue/run/data/gpt_index.h"
#include "accrue/run/data/indexed_dataset.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

/// One dataset of a split.
struct CorpusSet {
  std::string name;                       ///< the prefix as the spec gives it
  std::filesystem::path prefix;           ///< the same, resolved against the spec's folder
  IndexRange elements;                    ///< sequences of a GPT, documents of a BERT or a T5
  std::int64_t tokens = 0;                ///< of the elements
  double weight = 1.0;                    ///< requested share of the blend; they sum to 1
  std::optional<std::int64_t> requested;  ///< samples that its index must have; none: one pass
  std::int64_t samples = 0;               ///< that its index has; for a BERT or a T5 at least that many
  std::int64_t taken = 0;                 ///< by the blend
  std::int64_t passes = 1;                ///< over the tokens; of a GPT
};

struct CorpusSplit {
  DatasetSplit split = DatasetSplit::train;
  std::vector<CorpusSet> sets;
  bool weighted = false;     ///< several sets, blended by weights; else each sample of each set occurs once
  std::int64_t samples = 0;  ///< 0: the split is empty
};

struct IndexedCorpus {
  CorpusSplit training;
  CorpusSplit validation;
  std::optional<DatasetSidecar> sidecar;  ///< of the first dataset
};

/// Samples of all ranks that the run can train on: by run.samples, run.tokens, or run.updates times the largest update.
/// None if the run is limited by epochs.
std::optional<std::int64_t> samples_of_run(const RunSpec& spec);
/// Passes over the data in the index: run.epochs rounded up, or 1. A blend without weights has one pass.
std::int64_t passes_of_index(const RunSpec& spec);
/// data.seed, or run.seed.
std::int64_t index_seed(const RunSpec& spec);
/// Entry of data.consumed_samples for a split.
std::int64_t consumed_samples_of(const DataSpec& data, DatasetSplit split);
/// Number of samples that are skipped for good. A cyclic sampler starts inside an epoch and comes back to them.
std::int64_t skipped_samples_of(const DataSpec& data, DatasetSplit split);
/// Whether a run takes its training samples from a cyclic sampler.
bool is_cyclic(const DataSpec& data);
/// Request for a GPT's index of the set.
GptIndexRequest gpt_request(const RunSpec& spec, const CorpusSet& set);

/// Errors: data and protocol, with the dataset or the key of the spec in `where`.
Result<IndexedCorpus> plan_corpus(const RunSpec& spec, const std::filesystem::path& base_dir);

}  // namespace accrue
