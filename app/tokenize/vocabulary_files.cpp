// SPDX-License-Identifier: Apache-2.0
// The older files of tokenizers: a vocabulary with the merges beside it (GPT-2), and a list of pieces (BERT).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pipeline.h"

namespace accrue::tokenize {
namespace {

/// merges.txt: two pieces a line, after a line with a version.
Result<std::vector<BytePairParts::Merge>> merges_of_lines(const NamedText& file) {
  std::vector<BytePairParts::Merge> merges;
  std::string_view text = file.text;
  for (std::size_t place = 1; !text.empty(); ++place) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (place == 1 && line.starts_with("#version"))) continue;
    const auto space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      return fail(ErrorCode::data,
                  fmt::format("the list of merges of the tokenizer is damaged: line {} is not two pieces", place),
                  file.name, "Give vocab.json and merges.txt, or tokenizer.json, as they were published");
    merges.push_back({std::string(line.substr(0, space)), std::string(line.substr(space + 1)), place});
  }
  return merges;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_word_piece(std::string_view vocabulary, bool keep_case) {
  Vocabulary tokens;
  for (std::int32_t number = 0; !vocabulary.empty(); ++number) {
    std::string_view line = vocabulary.substr(0, vocabulary.find('\n'));
    vocabulary.remove_prefix(std::min(line.size() + 1, vocabulary.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    tokens.insert_or_assign(std::string(line), number);
    if (tokens.size() > most_tokens)
      return fail(ErrorCode::data,
                  fmt::format("the vocabulary of the tokenizer is damaged: it has more than {} tokens", most_tokens),
                  {}, "Give vocab.txt as it was published, with a token a line");
  }
  PipelineParts parts;
  auto model = make_word_piece(WordPieceParts{.tokens = std::move(tokens)});
  if (!model) return tl::unexpected(model.error());
  parts.normalizer = normalizer_of({{"type", "BertNormalizer"}, {"lowercase", !keep_case}}).value();
  parts.splitter = splitter_of({{"type", "BertPreTokenizer"}}).value();
  parts.model = *std::move(model);
  parts.joining.apart = "##";
  parts.kind = "wordpiece";
  parts.keep_case = keep_case;
  return make_pipeline(std::move(parts));
}

Result<std::unique_ptr<Tokenizer>> make_byte_pair(const NamedText& vocabulary, const NamedText& merges) {
  auto tokens = vocabulary_of(json::parse(vocabulary.text, nullptr, false));
  if (!tokens) {
    tokens.error().where = vocabulary.name;
    return tl::unexpected(tokens.error());
  }
  auto list = merges_of_lines(merges);
  if (!list) return tl::unexpected(list.error());
  PipelineParts parts;
  auto model = make_byte_pair(
      BytePairParts{.tokens = *std::move(tokens), .merges = *std::move(list), .file = merges.name, .unknown = {}});
  if (!model) return tl::unexpected(model.error());
  parts.splitter = splitter_of({{"type", "ByteLevel"}, {"add_prefix_space", false}}).value();
  parts.model = *std::move(model);
  parts.joining.letters = true;
  parts.kind = "bpe";
  return make_pipeline(std::move(parts));
}

std::filesystem::path merges_of(const std::filesystem::path& vocabulary) {
  std::string name = vocabulary.filename().string();
  constexpr std::string_view ending = "vocab.json";
  if (!name.ends_with(ending)) return vocabulary.parent_path() / "merges.txt";
  return vocabulary.parent_path() / (name.substr(0, name.size() - ending.size()) + "merges.txt");
}

}  // namespace accrue::tokenize
