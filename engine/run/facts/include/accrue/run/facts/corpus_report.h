// SPDX-License-Identifier: Apache-2.0
// Report on indexed data for a page: each dataset with its part and its requested and real share, and the source text
// of one sample. Pure functions of the spec and the files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/facts/indexed_corpus.h"

namespace accrue {

struct CorpusRow {
  std::string name;
  std::string part;            ///< "training" or "evaluation"
  std::int64_t documents = 0;  ///< of the whole dataset
  std::int64_t sequences = 0;  ///< of the whole dataset
  IndexRange elements;         ///< of the part: sequences of a GPT, else documents
  std::int64_t tokens = 0;     ///< of the part
  std::int64_t samples = 0;    ///< available to the run
  std::int64_t passes = 1;     ///< over the part, in the index
  double asked = 0;            ///< share of the blend by its weight
  double real = 0;             ///< share of the samples
  std::string tokenizer;       ///< empty: unknown
};

struct CorpusReport {
  std::vector<CorpusRow> rows;
  std::int64_t training_samples = 0;
  std::int64_t validation_samples = 0;
};

/// Costs no more than a plan. Errors: those of plan_corpus().
Result<CorpusReport> report_corpus(const RunSpec& spec, const std::filesystem::path& base_dir);

struct SamplePart {
  std::int64_t document = 0;
  std::int64_t sequence = 0;
  std::int64_t begin = 0;  ///< tokens begin, ..., end - 1 of the sequence
  std::int64_t end = 0;
  std::int64_t length = 0;  ///< of the sequence
  std::string prompt;       ///< the part of a prompt, which has no loss; shown as the text is
  std::string text;         ///< what follows: its beginning if a token is a byte; else its first tokens
};

struct SampleReport {
  std::int64_t sample = 0;
  std::string dataset;
  std::int64_t item = 0;  ///< of the dataset's own samples
  bool prompts = false;   ///< a part has one
  std::vector<SamplePart> parts;
};

/// Returns the source of a training sample. Loads the index, or builds it in memory, which takes time in proportion to
/// the corpus. Errors: those of IndexedSamples.
Result<SampleReport> report_sample(const RunSpec& spec, const std::filesystem::path& base_dir, std::int64_t sample);

}  // namespace accrue
