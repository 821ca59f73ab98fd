// SPDX-License-Identifier: Apache-2.0
// Facts about the data that the planner needs, found without LibTorch: the numbers of samples and tokens, and a
// fingerprint, so that a resumed run can detect that a file changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

/// A class of a table's labels and its frequency.
struct ClassCount {
  std::string name;  ///< its word, or its number
  std::int64_t label = 0;
  std::int64_t training = 0;    ///< samples
  std::int64_t validation = 0;  ///< samples
  bool operator==(const ClassCount&) const = default;
};

/// A hashed file, or all files of an indexed corpus. As long as the state is the same, so are the bytes.
struct FileMark {
  /// Device, inode, size and time of the last change of each file. Empty if that is not reliable: the change is too
  /// recent, or a file is open for writing.
  std::string state;
  std::string fingerprint;
  bool operator==(const FileMark&) const = default;
};

struct DataFacts {
  std::int64_t samples = 0;  ///< training samples after the validation split
  std::int64_t validation_samples = 0;
  std::int64_t tokens_per_sample = 1;       ///< increase of the token clock per sample; 0 if samples differ
  std::vector<std::int64_t> sample_tokens;  ///< inline ragged data only: items per training sample
  std::int64_t bytes = 0;                   ///< size of the file
  std::string fingerprint;           ///< XXH3-128 of the content (of the generator's parameters for synthetic), hex
  std::vector<FileMark> files;       ///< of data.path, and of data.validation_path; of indexed data one for all files
  std::int64_t inputs = 0;           ///< csv and inline: columns of x
  std::int64_t outputs = 0;          ///< csv and inline: columns of y
  bool validation_shuffled = false;  ///< the evaluation samples are drawn from all samples (SamplePlaces)
  std::vector<ClassCount> classes;   ///< csv and inline with a loss of classes, in the order of their labels
  bool operator==(const DataFacts&) const = default;
};

/// Whether the labels are words that name classes.
inline bool has_named_classes(const DataFacts& facts) {
  return !facts.classes.empty() && facts.classes.front().name != std::to_string(facts.classes.front().label);
}

/// Returns for example "setosa = 0, versicolor = 1, virginica = 2".
std::string class_names(const DataFacts& facts);

/// Items of each generated sample for a model of tokens: a GPT's tokens, a BERT's masked tokens, a T5's output tokens.
std::int64_t synthetic_items(const ModelSpec& model);
/// T5: spans of a generated sample, and the tokens of each.
std::int64_t synthetic_spans(const ModelSpec& model);
inline constexpr std::int64_t synthetic_span = 3;
/// Number of tokens at the end of the vocabulary with a special meaning in generated samples.
std::int64_t synthetic_special_tokens(const ModelSpec& model);
/// Minimum context and vocabulary for generated samples.
inline constexpr std::int64_t least_synthetic_context = 8;

/// Resolves data.path for a spec in base_dir.
std::filesystem::path data_path(const DataSpec& spec, const std::filesystem::path& base_dir);
/// Resolves data.validation_path; empty if there is none.
std::filesystem::path validation_data_path(const DataSpec& spec, const std::filesystem::path& base_dir);

/// Scans the data. Errors (code data): missing, unreadable, empty, too short for one sample, not a text, a CSV or token
/// file that does not parse, labels that are not classes although the loss needs them.
/// known: facts of an earlier scan of the same spec. A file with the same state is not read again for its hash.
Result<DataFacts> scan_data(const RunSpec& spec, const std::filesystem::path& base_dir, const DataFacts& known = {});

}  // namespace accrue
