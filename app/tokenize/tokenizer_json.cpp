// SPDX-License-Identifier: Apache-2.0
// tokenizer.json, the single file of a tokenizer in Hugging Face's library: its model, and the preprocessing of a text.
// Features that are not implemented here are refused by name. The post-processor is ignored: it adds the tokens around
// a sample, which is the data set's task.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tokenizer.h"
#include "unicode.h"

namespace accrue::tokenize {
namespace {

using nlohmann::json;

constexpr std::int64_t most_added = 100'000;
constexpr std::int64_t most_numbers = 4'000'000;
constexpr std::string_view words_of_gpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

tl::unexpected<Error> broken(const std::string& what) {
  return fail(ErrorCode::data, "the tokenizer.json is damaged: " + what, {}, "Give the file as it was published");
}

tl::unexpected<Error> unsupported(const std::string& what) {
  return fail(ErrorCode::data, "the tokenizer.json asks for what is not supported: " + what, {},
              "Give sentencepiece:MODEL if it has one, or make the dataset with Megatron-LM's preprocess_data.py");
}

/// Returns the value of a key; null if there is none.
const json& part_of(const json& object, const char* key) {
  static const json nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::string type_of(const json& part) {
  const json& type = part.is_object() ? part_of(part, "type") : part;
  return type.is_string() ? type.get<std::string>() : std::string();
}

bool flag_of(const json& part, const char* key, bool otherwise) {
  const json& flag = part_of(part, key);
  return flag.is_boolean() ? flag.get<bool>() : otherwise;
}

std::string text_of(const json& part, const char* key) {
  const json& text = part_of(part, key);
  return text.is_string() ? text.get<std::string>() : std::string();
}

/// Shortens a name in a message to one line.
std::string shown(const std::string& text) {
  return json(text.substr(0, 80)).dump(-1, ' ', true, json::error_handler_t::replace);
}

/// Returns whether a space is added before a text; refuses words other than GPT-2's.
Result<bool> space_before_words(const json& words) {
  const std::string type = type_of(words);
  if (type == "ByteLevel") {
    if (!flag_of(words, "use_regex", true)) return unsupported("a pre_tokenizer ByteLevel without its pattern");
    return flag_of(words, "add_prefix_space", true);
  }
  if (type != "Sequence")
    return unsupported(type.empty() ? "a BPE without a pre_tokenizer, whose tokens are no bytes"
                                    : "the pre_tokenizer " + shown(type));
  const json& steps = part_of(words, "pretokenizers");
  if (steps.is_array() && steps.size() == 1) return space_before_words(steps[0]);
  for (const json& step : steps) {
    const std::string name = type_of(step);
    if (name != "Split" && name != "ByteLevel") return unsupported("the pre_tokenizer " + shown(name));
    if (name == "Split" && text_of(part_of(step, "pattern"), "Regex") != words_of_gpt2)
      return unsupported("a pre_tokenizer Split by another pattern than GPT-2's: " +
                         shown(text_of(part_of(step, "pattern"), "Regex")));
  }
  const bool ours = steps.is_array() && steps.size() == 2 && type_of(steps[0]) == "Split" &&
                    text_of(steps[0], "behavior") == "Isolated" && !flag_of(steps[0], "invert", false) &&
                    type_of(steps[1]) == "ByteLevel" && !flag_of(steps[1], "use_regex", true) &&
                    !flag_of(steps[1], "add_prefix_space", true);
  if (!ours) return unsupported("this sequence of pre_tokenizers");
  return false;
}

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

Result<std::unique_ptr<Tokenizer>> byte_pair_of(const json& file) {
  const json& model = file["model"];
  if (const json& normalizer = part_of(file, "normalizer"); !normalizer.is_null())
    return unsupported("the normalizer " + shown(type_of(normalizer)));
  if (const json& dropout = part_of(model, "dropout"); dropout.is_number() && dropout.get<double>() > 0)
    return unsupported("the dropout of merges");
  for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const std::string mark = text_of(model, key); !mark.empty())
      return unsupported(fmt::format("model.{} = {}", key, shown(mark)));
  if (flag_of(model, "byte_fallback", false)) return unsupported("model.byte_fallback = true");
  const auto space_before = space_before_words(part_of(file, "pre_tokenizer"));
  if (!space_before) return tl::unexpected(space_before.error());
  auto tokens = tokens_of(part_of(model, "vocab"));
  if (!tokens) return tl::unexpected(tokens.error());
  auto merges = merges_of_model(part_of(model, "merges"));
  if (!merges) return tl::unexpected(merges.error());
  BytePairParts parts{.tokens = *std::move(tokens),
                      .merges = *std::move(merges),
                      .place_name = "merge",
                      .unknown = {},
                      .fuse_unknown = flag_of(model, "fuse_unk", false),
                      .whole_words = flag_of(model, "ignore_merges", false),
                      .space_before = *space_before};
  if (std::string unknown = text_of(model, "unk_token"); !unknown.empty()) parts.unknown = std::move(unknown);
  return make_byte_pair(std::move(parts), {});
}

Result<std::unique_ptr<Tokenizer>> word_piece_of(const json& file, bool keep_case) {
  const json& model = file["model"];
  const json& normal = part_of(file, "normalizer");
  const json& accents = part_of(normal, "strip_accents");
  if (type_of(normal) != "BertNormalizer") return unsupported("a WordPiece without the normalizer BertNormalizer");
  const bool lower = flag_of(normal, "lowercase", true);
  if (!flag_of(normal, "clean_text", true) || !flag_of(normal, "handle_chinese_chars", true) ||
      (accents.is_boolean() && accents.get<bool>() != lower))
    return unsupported("a BertNormalizer with other options than BERT's");
  if (type_of(part_of(file, "pre_tokenizer")) != "BertPreTokenizer")
    return unsupported("a WordPiece without the pre_tokenizer BertPreTokenizer");
  if (const json& prefix = part_of(model, "continuing_subword_prefix"); prefix.is_string() && prefix != "##")
    return unsupported("model.continuing_subword_prefix = " + shown(prefix.get<std::string>()));
  if (const json& longest = part_of(model, "max_input_chars_per_word"); longest.is_number() && longest != 100)
    return unsupported("model.max_input_chars_per_word = " + longest.dump());
  if (keep_case && lower)
    return fail(ErrorCode::config, "the tokenizer.json makes letters small", "--keep-case", "Leave it out");
  const auto numbers = tokens_of(part_of(model, "vocab"));
  if (!numbers) return tl::unexpected(numbers.error());
  std::vector<std::string> tokens;
  for (const auto& [token, number] : *numbers) {
    const auto place = static_cast<std::size_t>(number);
    tokens.resize(std::max(tokens.size(), place + 1));
    tokens[place] = token;
  }
  const std::string unknown = text_of(model, "unk_token");
  return make_word_piece(tokens, unknown.empty() ? "[UNK]" : unknown, !lower);
}

Result<std::vector<AddedToken>> added_tokens_of(const json& file) {
  std::vector<AddedToken> added;
  const json& list = part_of(file, "added_tokens");
  if (!list.is_null() && (!list.is_array() || list.size() > most_added)) return broken("added_tokens is no list");
  for (const json& each : list) {
    const json& number = part_of(each, "id");
    const std::string content = text_of(each, "content");
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() >= most_numbers || content.empty())
      return broken("an added token has no number or no text");
    const auto refuse = [&](const char* what) { return unsupported(fmt::format("{} of {}", what, shown(content))); };
    if (flag_of(each, "single_word", false)) return refuse("single_word");
    if (flag_of(each, "rstrip", false)) return refuse("rstrip");
    // A long text is cut before white space, but never inside a run of it.
    const CodePoints points = code_points(content);
    for (std::size_t i = 1; i < points.size(); ++i)
      if (is_space(points[i]) && !is_space(points[i - 1])) return refuse("the white space within the text");
    const bool normalized = flag_of(each, "normalized", !flag_of(each, "special", false));
    if (normalized && !part_of(file, "normalizer").is_null()) return refuse("normalized");
    added.push_back({content, number.get<std::int32_t>(), flag_of(each, "lstrip", false), !normalized});
  }
  return added;
}

json parsed(std::string_view text) {
  return json::parse(text, nullptr, false);
}

/// An early file has no type.
std::string type_of_model(const json& model) {
  const std::string type = type_of(model);
  return type.empty() && model.contains("merges") ? "BPE" : type;
}

}  // namespace

std::string kind_of_tokenizer_json(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return {};
  const json file = parsed(text);
  if (!file.is_object() || !part_of(file, "model").is_object()) return {};
  const std::string type = type_of_model(file["model"]);
  return type == "BPE" ? "bpe" : type == "WordPiece" ? "wordpiece" : "another";
}

Result<std::unique_ptr<Tokenizer>> make_from_tokenizer_json(std::string_view text, bool keep_case) {
  const json file = parsed(text);
  if (!file.is_object() || !part_of(file, "model").is_object()) return broken("it has no model");
  const std::string type = type_of_model(file["model"]);
  if (type != "BPE" && type != "WordPiece")
    return unsupported(type == "Unigram" ? "its model is Unigram, which is SentencePiece's"
                                         : "the model " + shown(type));
  auto added = added_tokens_of(file);
  if (!added) return tl::unexpected(added.error());
  auto made = type == "BPE" ? byte_pair_of(file) : word_piece_of(file, keep_case);
  if (!made) return made;
  return with_added_tokens(*std::move(made), *std::move(added));
}

}  // namespace accrue::tokenize
