// SPDX-License-Identifier: Apache-2.0
// tokenizer.json, the single file of a tokenizer in Hugging Face's library: its model, and the preprocessing of a text.
// Features that are not implemented here are refused by name. The post-processor is ignored: it adds the tokens around
// a sample, which is the data set's task.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "json_parts.h"
#include "pipeline.h"

namespace accrue::tokenize {
namespace {

constexpr std::int64_t most_added = 100'000;
constexpr std::int64_t most_numbers = 4'000'000;
/// Stands for a space in the tokens of SentencePiece and its kin.
constexpr const char* mark_of_space = "\xE2\x96\x81";

Result<std::vector<BytePairParts::Merge>> merges_of_model(const json& list) {
  if (!list.is_array()) return broken("model.merges is no list");
  std::vector<BytePairParts::Merge> merges;
  merges.reserve(list.size());
  for (const json& each : list) {
    const std::size_t place = merges.size() + 1;
    const bool pair = each.is_array() && each.size() == 2 && each[0].is_string() && each[1].is_string();
    const std::string line = each.is_string() ? each.get<std::string>() : std::string();
    const auto space = line.find(' ');
    if (pair)
      merges.push_back({each[0].get<std::string>(), each[1].get<std::string>(), place});
    else if (space != std::string::npos && line.find(' ', space + 1) == std::string::npos)
      merges.push_back({line.substr(0, space), line.substr(space + 1), place});
    else
      return broken(fmt::format("merge {} is not two pieces", place));
  }
  return merges;
}

/// The number of a model's key, if it is there and whole.
std::optional<std::int64_t> whole_of(const json& model, const char* key) {
  const json& number = part_of(model, key);
  if (!number.is_number_unsigned() || number.get<std::uint64_t>() >= most_numbers) return std::nullopt;
  return number.get<std::int64_t>();
}

Result<std::unique_ptr<WordModel>> byte_pair_of(const json& model, bool bytes) {
  if (const json& dropout = part_of(model, "dropout"); dropout.is_number() && dropout.get<double>() > 0)
    return unsupported("the dropout of merges");
  auto tokens = vocabulary_of(part_of(model, "vocab"));
  if (!tokens) return tl::unexpected(tokens.error());
  auto merges = merges_of_model(part_of(model, "merges"));
  if (!merges) return tl::unexpected(merges.error());
  BytePairParts parts{.tokens = *std::move(tokens),
                      .merges = *std::move(merges),
                      .place_name = "merge",
                      .unknown = {},
                      .fuse_unknown = flag_of(model, "fuse_unk", false),
                      .whole_words = flag_of(model, "ignore_merges", false),
                      .bytes = bytes,
                      .byte_fallback = flag_of(model, "byte_fallback", false),
                      .prefix = text_of(model, "continuing_subword_prefix"),
                      .suffix = text_of(model, "end_of_word_suffix")};
  if (std::string unknown = text_of(model, "unk_token"); !unknown.empty()) parts.unknown = std::move(unknown);
  return make_byte_pair(std::move(parts));
}

Result<std::unique_ptr<WordModel>> word_piece_of(const json& model) {
  auto tokens = vocabulary_of(part_of(model, "vocab"));
  if (!tokens) return tl::unexpected(tokens.error());
  WordPieceParts parts{.tokens = *std::move(tokens)};
  if (const std::string unknown = text_of(model, "unk_token"); !unknown.empty()) parts.unknown = unknown;
  if (model.contains("continuing_subword_prefix")) parts.prefix = text_of(model, "continuing_subword_prefix");
  if (const auto longest = whole_of(model, "max_input_chars_per_word"))
    parts.longest_word = static_cast<std::size_t>(*longest);
  return make_word_piece(std::move(parts));
}

Result<std::unique_ptr<WordModel>> unigram_of(const json& model) {
  UnigramParts parts;
  const json& list = part_of(model, "vocab");
  if (!list.is_array() || list.size() > most_tokens) return broken("model.vocab is no list of pieces");
  for (const json& each : list) {
    if (!each.is_array() || each.size() != 2 || !each[0].is_string() || !each[1].is_number())
      return broken(fmt::format("piece {} is not a text and its score", parts.pieces.size()));
    parts.pieces.push_back({each[0].get<std::string>(), each[1].get<double>()});
  }
  if (const auto unknown = whole_of(model, "unk_id")) parts.unknown = static_cast<std::int32_t>(*unknown);
  parts.byte_fallback = flag_of(model, "byte_fallback", false);
  return make_unigram(std::move(parts));
}

Result<std::unique_ptr<WordModel>> word_level_of(const json& model) {
  auto tokens = vocabulary_of(part_of(model, "vocab"));
  if (!tokens) return tl::unexpected(tokens.error());
  return make_word_level(*std::move(tokens), text_of(model, "unk_token"));
}

Result<std::vector<AddedToken>> added_tokens_of(const json& list) {
  std::vector<AddedToken> added;
  if (!list.is_null() && (!list.is_array() || list.size() > most_added)) return broken("added_tokens is no list");
  for (const json& each : list) {
    const auto number = whole_of(each, "id");
    const std::string content = text_of(each, "content");
    if (!number || content.empty()) return broken("an added token has no number or no text");
    // A long text is cut before white space, but never inside a run of it.
    const Text wide = to_utf16(content);
    for (std::size_t i = 1; i < wide.size(); ++i)
      if (is_space(wide[i]) && !is_space(wide[i - 1]))
        return unsupported("the white space within the text of " + shown(content));
    added.push_back({.content = content,
                     .token = static_cast<std::int32_t>(*number),
                     .takes_space_before = flag_of(each, "lstrip", false),
                     .takes_space_after = flag_of(each, "rstrip", false),
                     .alone = flag_of(each, "single_word", false),
                     .early = !flag_of(each, "normalized", !flag_of(each, "special", false))});
  }
  return added;
}

/// An early file has no type.
std::string type_of_model(const json& model) {
  const std::string type = type_of(model);
  return type.empty() && model.contains("merges") ? "BPE" : type;
}

std::string kind_of_model(const json& model) {
  const std::string type = type_of_model(model);
  constexpr std::pair<const char*, const char*> kinds[] = {
      {"BPE", "bpe"}, {"WordPiece", "wordpiece"}, {"Unigram", "unigram"}, {"WordLevel", "wordlevel"}};
  for (const auto& [name, kind] : kinds)
    if (type == name) return kind;
  return "another";
}

Result<std::unique_ptr<WordModel>> model_of(const json& file, bool bytes) {
  const json& model = file["model"];
  const std::string type = type_of_model(model);
  if (type == "BPE") return byte_pair_of(model, bytes);
  if (bytes) return unsupported("a model of bytes that is " + shown(type));
  if (type == "WordPiece") return word_piece_of(model);
  if (type == "Unigram") return unigram_of(model);
  if (type == "WordLevel") return word_level_of(model);
  return unsupported("the model " + shown(type));
}

Joining joining_of(const json& model, bool bytes) {
  const std::string type = type_of_model(model);
  if (bytes) return {.letters = true};
  if (type == "WordPiece" || type == "WordLevel")
    return {.apart = model.contains("continuing_subword_prefix") ? text_of(model, "continuing_subword_prefix") : "##"};
  const std::string suffix = text_of(model, "end_of_word_suffix");
  return {.space = suffix.empty() ? mark_of_space : suffix};
}

/// Whether a normalizer makes letters small.
bool makes_small(const json& normalizer) {
  const std::string type = type_of(normalizer);
  if (type == "Sequence")
    return std::ranges::any_of(part_of(normalizer, "normalizers"), [](const json& each) { return makes_small(each); });
  return type == "Lowercase" || (type == "BertNormalizer" && flag_of(normalizer, "lowercase", true));
}

/// Whether the steps put what stands for a space before a text that begins without one.
bool adds_space(const PipelineParts& parts) {
  Text text = u"a";
  Place place;
  if (parts.normalizer && !parts.normalizer(text, place)) return false;
  std::vector<Text> words{text};
  if (parts.splitter && !text.empty() && !parts.splitter(words, place)) return false;
  return !words.empty() && words.front().starts_with(to_utf16(mark_of_space));
}

/// The file as JSON; not an object if it is none, or nested too deep.
json parsed(std::string_view text) {
  constexpr int deepest = 32;
  bool deep = false;
  json file = json::parse(
      text, [&deep](int depth, json::parse_event_t, json&) { return !(deep |= depth > deepest); }, false);
  return deep ? json() : file;
}

Result<std::unique_ptr<Tokenizer>> made_of(const json& file, bool keep_case) {
  if (!file.is_object() || !part_of(file, "model").is_object()) return broken("it has no model");
  const json& words = part_of(file, "pre_tokenizer");
  const bool lower = makes_small(part_of(file, "normalizer"));
  const std::string kind = kind_of_model(file["model"]);
  if (keep_case && (lower || kind != "wordpiece"))
    return fail(ErrorCode::config, lower ? "the tokenizer.json makes letters small" : "applies to wordpiece only",
                "--keep-case", "Leave it out");
  PipelineParts parts;
  auto normalizer = normalizer_of(part_of(file, "normalizer"));
  if (!normalizer) return tl::unexpected(normalizer.error());
  auto splitter = splitter_of(words);
  if (!splitter) return tl::unexpected(splitter.error());
  auto added = added_tokens_of(part_of(file, "added_tokens"));
  if (!added) return tl::unexpected(added.error());
  auto model = model_of(file, splits_into_bytes(words));
  if (!model) return tl::unexpected(model.error());
  parts.normalizer = *std::move(normalizer);
  parts.splitter = *std::move(splitter);
  parts.added = *std::move(added);
  parts.model = *std::move(model);
  // Hugging Face's library gives an added token the number that the vocabulary has for it.
  for (AddedToken& each : parts.added)
    if (const std::int32_t known = parts.model->number_of(each.content); known >= 0) each.token = known;
  parts.joining = joining_of(file["model"], splits_into_bytes(words));
  parts.joining.begins_with_space = adds_space(parts);
  parts.kind = kind;
  parts.keep_case = parts.kind == "wordpiece" && !lower;
  return make_pipeline(std::move(parts));
}

}  // namespace

std::string kind_of_tokenizer_json(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return {};
  const json file = parsed(text);
  if (!file.is_object() || !part_of(file, "model").is_object()) return {};
  return kind_of_model(file["model"]);
}

Result<std::unique_ptr<Tokenizer>> make_from_tokenizer_json(std::string_view text, bool keep_case) {
  return made_of(parsed(text), keep_case);
}

}  // namespace accrue::tokenize
