// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "accrue/run/base/sha256.h"
#include "accrue/run/data/mapped_file.h"
#include "tokenizer.h"

namespace accrue::tokenize {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 30;

/// Reads a file; adds its name and hash to `files`.
Result<std::string> read_named(const std::filesystem::path& path, std::vector<TokenizerFile>& files) {
  const auto mapped = MappedFile::open(path);
  if (!mapped) return tl::unexpected(mapped.error());
  if (mapped->size() > most_bytes) return fail(ErrorCode::data, "is larger than 1 GiB", path.string());
  std::string text(reinterpret_cast<const char*>(mapped->data()), static_cast<std::size_t>(mapped->size()));
  files.push_back({path.string(), sha256_hex(text)});
  return text;
}

/// Makes a tokenizer from a vocabulary file, with the merges of byte pairs from the one beside it.
Result<std::unique_ptr<Tokenizer>> make_from_files(const std::string& kind, const std::filesystem::path& file,
                                                   const std::string& text, bool keep_case,
                                                   std::vector<TokenizerFile>& files) {
  if (kind == "sentencepiece") return make_sentence_piece(text);
  if (kind == "wordpiece") return make_word_piece(text, keep_case);
  const auto merges = read_named(merges_of(file), files);
  if (!merges) {
    Error error = merges.error();
    error.hint = "bpe takes vocab.json with merges.txt beside it, or tokenizer.json";
    return tl::unexpected(error);
  }
  return make_byte_pair({text, file.string()}, {*merges, merges_of(file).string()});
}

}  // namespace

Result<OpenedTokenizer> open_tokenizer(const std::string& kind, const std::filesystem::path& file, bool keep_case) {
  std::vector<TokenizerFile> files;
  const auto text = read_named(file, files);
  if (!text) return tl::unexpected(text.error());
  const std::string kind_of_json = kind == "sentencepiece" ? std::string() : kind_of_tokenizer_json(*text);
  const bool other = kind == "json" ? kind_of_json.empty() : !kind_of_json.empty() && kind_of_json != kind;
  if (other && kind_of_json.empty())
    return fail(ErrorCode::config, "this is no tokenizer.json", file.string(),
                "Say what it is: bpe:VOCAB.json, wordpiece:VOCAB.txt or sentencepiece:MODEL");
  if (other && kind_of_json != "another")
    return fail(ErrorCode::config, "the tokenizer.json is one of another kind", file.string(),
                "Give it as " + kind_of_json + ":" + file.string());
  auto made = kind_of_json.empty() ? make_from_files(kind, file, *text, keep_case, files)
                                   : make_from_tokenizer_json(*text, keep_case);
  if (!made) {
    if (made.error().where.empty()) made.error().where = file.string();
    return tl::unexpected(made.error());
  }
  OpenedTokenizer opened{*std::move(made), {}};
  opened.facts = opened.tokenizer->facts();
  opened.facts.files = std::move(files);
  return opened;
}

}  // namespace accrue::tokenize
