// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/index_cache.h"

#include <fmt/format.h>

#include "md5.h"
#include "posix_file.h"
#include "python_json.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

PythonJson json_of(const TokenizerIdentity& tokenizer) {
  std::vector<PythonJson> paths;
  for (const auto& path : tokenizer.paths) paths.push_back(PythonJson::of(path));
  std::vector<std::pair<std::string, PythonJson>> members = {{"class", PythonJson::of(tokenizer.class_name)},
                                                             {"tokenizer_path", PythonJson::list(paths)}};
  for (const auto& [name, value] : tokenizer.options) members.emplace_back(name, PythonJson::of(value));
  return PythonJson::object(members);
}

/// The first bound is the integer 0 with which the cumulative sum starts.
PythonJson json_of(const SplitMatrix& matrix) {
  std::vector<PythonJson> rows;
  for (std::size_t i = 0; i < matrix.size(); ++i)
    rows.push_back(matrix[i]
                       ? PythonJson::list({i == 0 ? PythonJson::of(std::int64_t{0}) : PythonJson::of(matrix[i]->begin),
                                           PythonJson::of(matrix[i]->end)})
                       : PythonJson::null());
  return PythonJson::list(rows);
}

Result<PythonJson> json_of(const DatasetIdentity& identity) {
  PythonJson matrix = PythonJson::null();
  if (identity.split) {
    const auto parsed = parse_split(*identity.split);
    if (!parsed) return tl::unexpected(parsed.error());
    matrix = json_of(*parsed);
  }
  std::vector<std::pair<std::string, PythonJson>> members = {
      {"class", PythonJson::of(class_name(identity))},
      {"dataset_path", PythonJson::of(identity.dataset_path)},
      {"num_samples", PythonJson::of(identity.num_samples)},
      {"index_split", PythonJson::of(to_string(identity.index_split))},
      {"random_seed", PythonJson::of(std::int64_t{identity.random_seed})},
      {"sequence_length", PythonJson::of(identity.sequence_length)},
      {"split", PythonJson::of(identity.split)},
      {"split_matrix", matrix},
      {"tokenizer", json_of(identity.tokenizer)}};
  if (const auto& masking = identity.masking) {
    const MaskingRule& rule = masking->rule;
    members.insert(members.end(), {{"masking_probability", PythonJson::of(rule.probability)},
                                   {"short_sequence_probability", PythonJson::of(masking->short_probability)},
                                   {"masking_max_ngram", PythonJson::of(rule.max_words)},
                                   {"masking_do_full_word", PythonJson::truth(rule.whole_words)},
                                   {"masking_do_permutation", PythonJson::truth(false)},
                                   {"masking_use_longer_ngrams", PythonJson::truth(rule.longer_runs)},
                                   {"masking_use_geometric_distribution", PythonJson::truth(rule.geometric)}});
    if (masking->decoder_sequence_length)
      members.emplace_back("sequence_length_decoder", PythonJson::of(*masking->decoder_sequence_length));
    else
      members.emplace_back("classification_head", PythonJson::truth(masking->binary_head));
  }
  return PythonJson::object(members);
}

Result<PythonJson> json_of(const BlendIdentity& identity) {
  std::vector<PythonJson> datasets, weights;
  for (const DatasetIdentity& each : identity.datasets) {
    auto dataset = json_of(each);
    if (!dataset) return tl::unexpected(dataset.error());
    datasets.push_back(*std::move(dataset));
  }
  for (const double weight : identity.weights)
    weights.push_back(identity.size ? PythonJson::of(weight) : PythonJson::of(static_cast<std::int64_t>(weight)));
  return PythonJson::object({{"class", PythonJson::of("BlendedDataset")},
                             {"datasets", PythonJson::list(datasets)},
                             {"split", PythonJson::of(to_string(identity.split))},
                             {"weights", PythonJson::list(weights)},
                             {"size", PythonJson::of(identity.size)}});
}

template <typename Identity>
Result<std::string> text_of(const Identity& identity) {
  auto json = json_of(identity);
  if (!json) return tl::unexpected(json.error());
  return std::move(json->text);
}

/// Names of sentence indices lack their split.
std::string class_and_split(const DatasetIdentity& identity) {
  const std::string name(class_name(identity));
  return identity.masking ? name : fmt::format("{}-{}", name, to_string(identity.index_split));
}

std::string class_and_split(const BlendIdentity& identity) {
  return fmt::format("BlendedDataset-{}", to_string(identity.split));
}

/// Files of an index, by the suffixes of their names.
struct CacheNames {
  fs::path stem;
  std::string description;
  std::optional<CorpusMark> corpus;
  fs::path operator[](const char* ending) const { return stem.string() + ending; }
};

std::optional<CorpusMark> corpus_of(const DatasetIdentity& identity) {
  return identity.corpus;
}
/// A blend is determined by its description.
std::optional<CorpusMark> corpus_of(const BlendIdentity&) {
  return {};
}

template <typename Identity>
Result<CacheNames> cache_names(const fs::path& folder, const Identity& identity) {
  auto text = description_of(identity);
  if (!text) return tl::unexpected(text.error());
  const auto hash = md5_hex(*text);
  if (!hash) return tl::unexpected(hash.error());
  return CacheNames{folder / fmt::format("{}-{}-", *hash, class_and_split(identity)), *std::move(text),
                    corpus_of(identity)};
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// Whether the files were built from the current corpus.
bool is_of_corpus(const CacheNames& names) {
  if (!names.corpus) return true;
  if (is_file(names["corpus.txt"])) {
    const auto hash = read_file(names["corpus.txt"], 4096);
    return hash && *hash == names.corpus->hash + "\n";
  }
  std::error_code error;
  const auto written = fs::last_write_time(names["description.txt"], error);
  return !error && written > names.corpus->changed;
}

using Part = std::pair<const char*, IndexArray*>;

/// Returns false if a file is missing or belongs to another corpus.
Result<bool> load_parts(const CacheNames& names, std::initializer_list<Part> parts) {
  bool all = is_file(names["description.txt"]);
  for (const auto& [ending, array] : parts) all = all && is_file(names[ending]);
  if (!all || !is_of_corpus(names)) return false;
  for (const auto& [ending, array] : parts) {
    auto loaded = IndexArray::load(names[ending]);
    if (!loaded) return tl::unexpected(loaded.error());
    *array = *std::move(loaded);
  }
  return true;
}

/// The description is removed first and written last: files without it are not an index.
Result<void> save_parts(const CacheNames& names,
                        std::initializer_list<std::pair<const char*, const IndexArray*>> parts) {
  std::error_code error;
  fs::create_directories(names.stem.parent_path(), error);
  if (error) return disk_error(names.stem.parent_path(), "cannot be made", error.value());
  fs::remove(names["description.txt"], error);
  for (const auto& [ending, array] : parts)
    if (auto saved = array->save(names[ending]); !saved) return saved;
  if (names.corpus)
    if (auto written = write_file(names["corpus.txt"], names.corpus->hash + "\n", shared_mode); !written)
      return written;
  return write_file(names["description.txt"], names.description, shared_mode);
}

tl::unexpected<Error> no_fit(const CacheNames& names) {
  return fail(ErrorCode::protocol, "holds indices that do not fit together", names["description.txt"].string(),
              "Remove the file; the indices are then built again");
}

}  // namespace

Result<std::string> description_of(const DatasetIdentity& identity) {
  return text_of(identity);
}

Result<std::string> description_of(const BlendIdentity& identity) {
  return text_of(identity);
}

fs::path default_index_folder(const fs::path& prefix, std::string_view class_name) {
  return prefix / "cache" / (std::string(class_name) + "_indices");
}

std::string_view class_name(const DatasetIdentity& identity) {
  if (!identity.masking) return "GPTDataset";
  return identity.masking->decoder_sequence_length ? "T5MaskedWordPieceDataset" : "BERTMaskedWordPieceDataset";
}

Result<std::optional<IndexArray>> load_sentence_index(const fs::path& folder, const DatasetIdentity& identity) {
  const auto names = cache_names(folder, identity);
  if (!names) return tl::unexpected(names.error());
  IndexArray index;
  const auto loaded = load_parts(*names, {{"sample_index.npy", &index}});
  if (!loaded) return tl::unexpected(loaded.error());
  if (!*loaded) return std::nullopt;
  if (index.columns() != 3 || index.size() == 0) return no_fit(*names);
  return index;
}

Result<void> save_sentence_index(const fs::path& folder, const DatasetIdentity& identity, const IndexArray& index) {
  const auto names = cache_names(folder, identity);
  if (!names) return tl::unexpected(names.error());
  return save_parts(*names, {{"sample_index.npy", &index}});
}

Result<std::optional<GptIndex>> load_index(const fs::path& folder, const DatasetIdentity& identity) {
  const auto names = cache_names(folder, identity);
  if (!names) return tl::unexpected(names.error());
  GptIndex index;
  const auto loaded = load_parts(*names, {{"document_index.npy", &index.document_index},
                                          {"sample_index.npy", &index.sample_index},
                                          {"shuffle_index.npy", &index.shuffle_index}});
  if (!loaded) return tl::unexpected(loaded.error());
  if (!*loaded) return std::nullopt;
  if (index.document_index.columns() != 0 || index.sample_index.columns() != 2 || index.shuffle_index.columns() != 0 ||
      index.sample_index.size() != index.shuffle_index.size() + 1)
    return no_fit(*names);
  return index;
}

Result<std::optional<BlendIndex>> load_index(const fs::path& folder, const BlendIdentity& identity) {
  const auto names = cache_names(folder, identity);
  if (!names) return tl::unexpected(names.error());
  BlendIndex index;
  const auto loaded = load_parts(
      *names, {{"dataset_index.npy", &index.dataset_index}, {"dataset_sample_index.npy", &index.dataset_sample_index}});
  if (!loaded) return tl::unexpected(loaded.error());
  if (!*loaded) return std::nullopt;
  if (index.dataset_index.columns() != 0 || index.dataset_sample_index.columns() != 0 ||
      index.dataset_index.size() != index.dataset_sample_index.size())
    return no_fit(*names);
  return index;
}

Result<void> save_index(const fs::path& folder, const DatasetIdentity& identity, const GptIndex& index) {
  const auto names = cache_names(folder, identity);
  if (!names) return tl::unexpected(names.error());
  return save_parts(*names, {{"document_index.npy", &index.document_index},
                             {"sample_index.npy", &index.sample_index},
                             {"shuffle_index.npy", &index.shuffle_index}});
}

Result<void> save_index(const fs::path& folder, const BlendIdentity& identity, const BlendIndex& index) {
  const auto names = cache_names(folder, identity);
  if (!names) return tl::unexpected(names.error());
  return save_parts(
      *names, {{"dataset_index.npy", &index.dataset_index}, {"dataset_sample_index.npy", &index.dataset_sample_index}});
}

}  // namespace accrue
