// SPDX-License-Identifier: Apache-2.0
// What the planner must know of the data, found without LibTorch: how many samples, how many tokens, and a fingerprint
// so that a resumed run can tell that the file changed under it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/result.h"
#include "accrue/run/run_spec.h"

namespace accrue {

/// A class of the labels of a table, and how often it comes.
struct ClassCount {
  std::string name;  ///< the word that stands for it, or its number
  std::int64_t label = 0;
  std::int64_t training = 0;    ///< samples
  std::int64_t validation = 0;  ///< samples
  bool operator==(const ClassCount&) const = default;
};

/// A file that was hashed. While its state is the same, so are its bytes.
struct FileMark {
  /// Device, inode, size and time of the last change. Empty where that does not tell: the change is too recent, or the
  /// file is open for writing.
  std::string state;
  std::string fingerprint;
  bool operator==(const FileMark&) const = default;
};

struct DataFacts {
  std::int64_t samples = 0;  ///< training samples after the validation split
  std::int64_t validation_samples = 0;
  std::int64_t tokens_per_sample = 1;       ///< what one sample adds to the token clock; 0 where samples differ
  std::vector<std::int64_t> sample_tokens;  ///< inline ragged data only: items per training sample
  std::int64_t bytes = 0;                   ///< size of the file
  std::string fingerprint;           ///< XXH3-128 of the content (of the generator's parameters for synthetic), hex
  std::vector<FileMark> files;       ///< text, tokens and csv: of data.path, and of data.validation_path
  std::int64_t inputs = 0;           ///< csv and inline: columns of x
  std::int64_t outputs = 0;          ///< csv and inline: columns of y
  bool validation_shuffled = false;  ///< the samples for evaluation are drawn from all (SamplePlaces)
  std::vector<ClassCount> classes;   ///< csv and inline with a loss of classes, in the order of their labels
  bool operator==(const DataFacts&) const = default;
};

/// The labels are words, and the classes stand for them.
inline bool has_named_classes(const DataFacts& facts) {
  return !facts.classes.empty() && facts.classes.front().name != std::to_string(facts.classes.front().label);
}

/// "setosa = 0, versicolor = 1, virginica = 2"
std::string class_names(const DataFacts& facts);

/// Items of each sample that the generator makes for a model of tokens: a GPT's tokens, what a BERT is to fill in, what
/// a T5 is to write.
std::int64_t synthetic_items(const ModelSpec& model);
/// T5: spans of a made sample, each of so many tokens.
std::int64_t synthetic_spans(const ModelSpec& model);
inline constexpr std::int64_t synthetic_span = 3;
/// The last tokens of the vocabulary, which mean something of their own in made samples.
std::int64_t synthetic_special_tokens(const ModelSpec& model);
/// The shortest context, and the smallest vocabulary, of which samples can be made.
inline constexpr std::int64_t least_synthetic_context = 8;

/// Where data.path points for a spec that lies in base_dir.
std::filesystem::path data_path(const DataSpec& spec, const std::filesystem::path& base_dir);
/// The same of data.validation_path; empty where there is none.
std::filesystem::path validation_data_path(const DataSpec& spec, const std::filesystem::path& base_dir);

/// Scans the data. Errors (code data): missing, unreadable, empty, too short for one sample, no text, a csv or token
/// file that does not parse, labels that are no classes where the loss needs them.
/// known: of an earlier scan. A file whose state is the same is not read again for its hash.
Result<DataFacts> scan_data(const RunSpec& spec, const std::filesystem::path& base_dir, const DataFacts& known = {});

}  // namespace accrue
