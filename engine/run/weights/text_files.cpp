// SPDX-License-Identifier: Apache-2.0
#include "text_files.h"

#include <fmt/format.h>

#include <optional>
#include <system_error>

#include "accrue/run/base/sha256.h"
#include "accrue/run/data/dataset_sidecar.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/weights/saved_run.h"
#include "posix_file.h"

namespace accrue {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_tokens_bytes = 1 << 20;
constexpr std::size_t most_tokenizer_bytes = std::size_t{1} << 30;
constexpr const char* vocabulary_name = "vocab.txt";  // of a WordPiece
constexpr const char* tokenizer_names[] = {
    "tokenizer.json",    "tokenizer_config.json", "special_tokens_map.json", "vocab.json",
    "merges.txt",        vocabulary_name,         "tokenizer.model",         "spiece.model",
    "added_tokens.json", "chat_template.jinja"};
constexpr const char* token_names[] = {"bos_token_id", "eos_token_id", "pad_token_id"};

bool stands(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored);
}

/// The folder in Hugging Face's layout from which a run's weights come at last, through runs that started from runs.
/// Empty if there was none. If a run on the way is gone, that run's folder.
fs::path published_start(RunSpec spec) {
  constexpr int most_runs = 64;  // folders may name each other
  for (int i = 0; i < most_runs && spec.model.init == WeightInit::checkpoint; ++i) {
    const fs::path folder = spec.model.weights;
    const fs::path run = run_of(folder);
    if (run.empty()) return folder;
    spec = read_spec(run / "spec.toml").spec;
  }
  return {};
}

/// Adds the tokens that a file of the folder names.
void add_tokens(const fs::path& file, Json& tokens) {
  const auto text = read_file(file, most_tokens_bytes);
  const Json json = text ? parse_json(*text) : Json();
  for (const char* name : token_names)
    if (json.is_object() && json.contains(name) && !json[name].is_null()) tokens[name] = json[name];
}

void add_published(const fs::path& folder, TextFiles& text) {
  add_tokens(folder / "config.json", text.tokens);
  add_tokens(folder / generation_name, text.tokens);
  for (const char* name : tokenizer_names)
    if (stands(folder / name)) text.copies.push_back({folder / name, name});
  if (!text.copies.empty()) text.summary = "the tokenizer is that of " + folder.string();
  // How the model is meant to draw its tokens.
  if (stands(folder / generation_name)) text.copies.push_back({folder / generation_name, generation_name});
}

/// The name under which transformers looks for a tokenizer's file.
std::string published_name(const DatasetSidecar& sidecar, std::size_t file) {
  if (sidecar.tokenizer == "sentencepiece") return "tokenizer.model";
  if (file > 0) return "merges.txt";
  if (sidecar.files.size() > 1) return "vocab.json";
  return fs::path(sidecar.files.front().path).extension() == ".json" ? "tokenizer.json" : vocabulary_name;
}

/// A tokenizer's file that is what it was, or in words why there is none. It is named as when the dataset was built,
/// relative to the folder of that time, which may be that of the dataset.
tl::expected<fs::path, std::string> made_file(const TokenizerFile& file, const fs::path& dataset_folder) {
  std::string why = "is gone";
  for (const fs::path& path : {fs::path(file.path), dataset_folder / file.path}) {
    if (!stands(path)) continue;
    const auto bytes = read_file(path, most_tokenizer_bytes);
    if (bytes && sha256_hex(*bytes) == file.sha256) return path;
    why = bytes ? "has changed" : "cannot be read";
  }
  return tl::unexpected(why);
}

/// Adds the files of the tokenizer that made a dataset, unless one is no longer what it was.
void add_made(const fs::path& prefix, const DatasetSidecar& sidecar, TextFiles& text) {
  std::vector<TextFiles::Copy> copies;
  for (const TokenizerFile& file : sidecar.files) {
    const auto path = made_file(file, prefix.parent_path());
    if (!path) {
      text.summary =
          fmt::format("no tokenizer: {}, which made the run's tokens, {}; copy it as it was", file.path, path.error());
      return;
    }
    copies.push_back({*path, published_name(sidecar, copies.size())});
  }
  if (copies.front().name == vocabulary_name) {
    text.summary = "no tokenizer: beside such a model transformers reads no " + sidecar.files.front().path +
                   ", which made the run's tokens; load it as a BertTokenizer";
    return;
  }
  text.summary = "the tokenizer is " + sidecar.files.front().path + ", which made the run's tokens";
  text.copies.insert(text.copies.end(), copies.begin(), copies.end());
}

}  // namespace

TextFiles text_files_of(const RunSpec& spec, const fs::path& run_dir) {
  TextFiles text;
  if (const fs::path start = published_start(spec); !start.empty()) add_published(start, text);
  if (!text.summary.empty()) return text;
  text.summary = "no tokenizer is known: copy the files of the one that made the run's tokens";
  if (spec.data.kind != DataKind::indexed || spec.data.paths.empty()) return text;
  const fs::path prefix = run_dir / spec.data.paths.front();
  const auto read = read_sidecar(prefix);
  const auto sidecar = read ? *read : std::nullopt;
  if (sidecar && !sidecar->files.empty()) add_made(prefix, *sidecar, text);
  if (sidecar && sidecar->tokenizer == "bytes") text.summary = "no tokenizer: a token is a byte";
  const auto end = spec.data.end_of_document ? spec.data.end_of_document
                   : sidecar                 ? sidecar->end_of_document
                                             : std::nullopt;
  if (end && !text.tokens.contains("eos_token_id")) text.tokens["eos_token_id"] = *end;
  return text;
}

}  // namespace accrue
