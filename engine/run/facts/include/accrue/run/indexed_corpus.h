// SPDX-License-Identifier: Apache-2.0
// What a spec with data.kind = "indexed" reads: which part of each dataset, how many samples of it, in which blend. All
// from the headers of the files, so that the cost does not grow with them; only for a BERT or a T5 whose run is counted
// in epochs the sentences are counted. The samples themselves are in indexed_samples.h.
//
// As in Megatron-LM an index is made for the run: it holds at least the samples that the run trains on, with as many
// passes over the tokens as that needs, and is read once, in its order. Several datasets without weights are the
// exception: each gives the samples of one pass, and where the run needs more they are read again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/dataset_sidecar.h"
#include "accrue/run/dataset_splits.h"
#include "accrue/run/gpt_index.h"
#include "accrue/run/indexed_dataset.h"
#include "accrue/run/result.h"
#include "accrue/run/run_spec.h"

namespace accrue {

/// One dataset of a split.
struct CorpusSet {
  std::string name;                       ///< the prefix as the spec gives it
  std::filesystem::path prefix;           ///< the same, from the folder of the spec on
  IndexRange elements;                    ///< sequences of a GPT, documents of a BERT or a T5
  std::int64_t tokens = 0;                ///< of the elements
  double weight = 1.0;                    ///< share of the blend that was asked for; they sum to 1
  std::optional<std::int64_t> requested;  ///< samples that its index must have; none: those of one pass
  std::int64_t samples = 0;               ///< that its index has; of a BERT or a T5 at least so many
  std::int64_t taken = 0;                 ///< by the blend
  std::int64_t passes = 1;                ///< over the tokens; of a GPT
};

struct CorpusSplit {
  DatasetSplit split = DatasetSplit::train;
  std::vector<CorpusSet> sets;
  bool weighted = false;     ///< several sets, blended by weights; else each sample of each set comes once
  std::int64_t samples = 0;  ///< 0: the split has none
};

struct IndexedCorpus {
  CorpusSplit training;
  CorpusSplit validation;
  std::int64_t bytes = 0;
  std::optional<DatasetSidecar> sidecar;  ///< of the first dataset
  std::string fingerprint;
};

/// Samples of all ranks that the run can train on: by run.samples, run.tokens, or run.updates times those of the
/// largest update. None where the run is counted in epochs.
std::optional<std::int64_t> samples_of_run(const RunSpec& spec);
/// Passes over the data in the index: run.epochs rounded up, or 1. A blend without weights has one pass.
std::int64_t passes_of_index(const RunSpec& spec);
/// data.seed, or run.seed.
std::int64_t index_seed(const RunSpec& spec);
/// What data.consumed_samples says of a split.
std::int64_t consumed_samples_of(const DataSpec& data, DatasetSplit split);
/// How many of its samples are passed over for good. A cyclic sampler begins in the midst of an epoch, and comes back
/// to them.
std::int64_t skipped_samples_of(const DataSpec& data, DatasetSplit split);
/// Whether a run takes its training samples from a cyclic sampler.
bool is_cyclic(const DataSpec& data);
/// What a GPT's index of the set is asked for.
GptIndexRequest gpt_request(const RunSpec& spec, const CorpusSet& set);

/// Errors: data and protocol, with the dataset or the key of the spec in `where`.
Result<IndexedCorpus> plan_corpus(const RunSpec& spec, const std::filesystem::path& base_dir);

}  // namespace accrue
