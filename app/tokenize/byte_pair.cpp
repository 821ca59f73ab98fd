// SPDX-License-Identifier: Apache-2.0
// GPT-2's byte-level pairs. A text is cut into words, each with the space before it. A word starts as its bytes. The
// two neighbours whose merge is earliest in the list are joined, until no merge applies. Files name printable bytes by
// themselves, the others by letters from U+0100 on.
// Source: Radford et al., Language Models are Unsupervised Multitask Learners; openai/gpt-2, src/encoder.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>
#include <utility>

#include "tokenizer.h"
#include "unicode.h"

namespace accrue::tokenize {
namespace {

/// The letter of each byte in files.
std::array<std::string, 256> byte_letters() {
  std::array<std::string, 256> letters;
  UChar32 next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    append_utf8(letters[static_cast<std::size_t>(byte)], prints ? byte : next++);
  }
  return letters;
}

/// End of the word that begins at `at`, by the pattern of GPT-2:
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t word_end(const CodePoints& points, std::size_t at) {
  const auto point = [&](std::size_t i) { return i < points.size() ? points[i] : UChar32{0}; };
  if (point(at) == '\'') {
    const UChar32 first = point(at + 1), second = point(at + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l'))
      return at + 3;
  }
  const auto kind = [](UChar32 each) { return is_letter(each) ? 0 : is_number(each) ? 1 : is_space(each) ? 2 : 3; };
  const std::size_t begin = points[at] == ' ' ? at + 1 : at;
  if (begin < points.size() && kind(points[begin]) != 2) {
    std::size_t end = begin;
    while (end < points.size() && kind(points[end]) == kind(points[begin])) ++end;
    return end;
  }
  std::size_t end = at;
  while (end < points.size() && is_space(points[end])) ++end;
  // White space leaves its last character to the following word.
  return end < points.size() && end - at > 1 ? end - 1 : end;
}

struct Merge {
  std::int32_t rank;
  std::int32_t token;  ///< result of the merge
};

tl::unexpected<Error> damaged(const char* part, const std::string& what, const std::string& file = {}) {
  return fail(ErrorCode::data, fmt::format("the {} of the tokenizer is damaged: {}", part, what), file,
              "Give vocab.json and merges.txt, or tokenizer.json, as they were published");
}

class BytePair final : public Tokenizer {
 public:
  Result<void> take(BytePairParts parts, const std::string& merges_file) {
    parts_ = std::move(parts);
    for (const auto& [name, token] : parts_.tokens) size_ = std::max<std::int64_t>(size_, std::int64_t{token} + 1);
    for (std::size_t byte = 0; byte < letters_.size(); ++byte) bytes_[byte] = number_of(letters_[byte]);
    if (parts_.unknown) {
      unknown_ = number_of(*parts_.unknown);
      if (unknown_ < 0)
        return damaged("vocabulary", fmt::format("it lacks {}, the token of what is unknown", *parts_.unknown));
    }
    return take_merges(merges_file);
  }

  Result<Tokens> encode(std::string_view text, bool goes_on) const override {
    Tokens tokens;
    CodePoints points = code_points(text);
    if (parts_.space_before && !goes_on && !points.empty() && points.front() != ' ') points.insert(points.begin(), ' ');
    std::string word;
    for (std::size_t at = 0; at < points.size();) {
      const std::size_t end = word_end(points, at);
      word.clear();
      for (; at < end; ++at) append_utf8(word, points[at]);
      if (unknown_ < 0) left_out_ += std::ranges::count_if(word, [this](char each) { return byte_token(each) < 0; });
      append_word(word, tokens);
    }
    return tokens;
  }

  std::int64_t left_out() const override { return left_out_; }

  /// A model's output may end inside a character.
  std::string decode(const Tokens& tokens) const override {
    std::unordered_map<std::int32_t, const std::string*> names;
    for (const auto& [name, token] : parts_.tokens) names.emplace(token, &name);
    std::unordered_map<std::string, char> bytes;
    for (std::size_t byte = 0; byte < letters_.size(); ++byte) bytes.emplace(letters_[byte], static_cast<char>(byte));
    std::string text, letter;
    for (const std::int32_t token : tokens) {
      const auto name = names.find(token);
      if (name == names.end()) continue;
      for (const UChar32 point : code_points(*name->second)) {
        letter.clear();
        append_utf8(letter, point);
        const auto byte = bytes.find(letter);
        if (byte == bytes.end())
          text += letter;
        else
          text.push_back(byte->second);
      }
    }
    return text;
  }

  DatasetSidecar facts() const override {
    DatasetSidecar facts{.tokenizer = "bpe", .files = {}, .special = {.vocabulary = size_, .pad = -1}};
    facts.end_of_document = end_of_document_of(parts_.tokens);
    return facts;
  }

 private:
  /// The number of a token, or -1.
  std::int32_t number_of(const std::string& name) const {
    const auto found = parts_.tokens.find(name);
    return found == parts_.tokens.end() ? -1 : found->second;
  }

  std::int32_t byte_token(char byte) const { return bytes_[static_cast<unsigned char>(byte)]; }

  Result<void> take_merges(const std::string& file) {
    std::int32_t rank = 0;
    for (const BytePairParts::Merge& merge : parts_.merges) {
      const auto wrong = [&](const char* what) {
        return damaged("list of merges", fmt::format("{} {} {}", parts_.place_name, merge.place, what), file);
      };
      const std::int32_t left = number_of(merge.left), right = number_of(merge.right);
      if (left < 0 || right < 0) return wrong("has a piece that the vocabulary lacks");
      const std::int32_t both = number_of(merge.left + merge.right);
      if (both < 0) return wrong("makes a token that the vocabulary lacks");
      merges_.emplace(key(left, right), Merge{rank++, both});
    }
    return {};
  }

  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  }

  struct Symbol {
    std::int32_t token;
    std::int32_t before, after;  ///< neighbours; -1: none
    bool gone;
  };
  struct Candidate {
    std::int32_t rank;
    std::int32_t left;           ///< index of the left one
    std::int32_t first, second;  ///< tokens; if they have changed, the candidate is stale
    std::int32_t token;
    bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : left > other.left; }
  };

  /// Most words of a text are repetitions.
  void append_word(const std::string& word, Tokens& tokens) const {
    constexpr std::size_t most_known = std::size_t{1} << 16, longest_known = 64;
    if (word.size() > longest_known) return encode_word(word, tokens);
    if (known_.size() >= most_known) known_.clear();
    const auto [known, is_new] = known_.try_emplace(word);
    if (is_new) encode_word(word, known->second);
    tokens.insert(tokens.end(), known->second.begin(), known->second.end());
  }

  void encode_word(std::string_view word, Tokens& tokens) const {
    std::vector<Symbol> symbols;
    symbols.reserve(word.size());
    if (parts_.whole_words)
      if (const std::int32_t whole = number_of(lettered(word)); whole >= 0) return tokens.push_back(whole);
    bool after_unknown = false;
    for (const char each : word) {
      const std::int32_t token = byte_token(each);
      if (token < 0 && unknown_ < 0) continue;
      const bool fused = std::exchange(after_unknown, token < 0) && token < 0 && parts_.fuse_unknown;
      const auto at = static_cast<std::int32_t>(symbols.size());
      if (!fused) symbols.push_back({token < 0 ? unknown_ : token, at - 1, at + 1, false});
    }
    if (symbols.empty()) return;
    symbols.back().after = -1;
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
    const auto consider = [&](std::int32_t left) {
      if (left < 0 || symbols[static_cast<std::size_t>(left)].after < 0) return;
      const std::int32_t first = symbols[static_cast<std::size_t>(left)].token;
      const std::int32_t second =
          symbols[static_cast<std::size_t>(symbols[static_cast<std::size_t>(left)].after)].token;
      if (const auto found = merges_.find(key(first, second)); found != merges_.end())
        queue.push({found->second.rank, left, first, second, found->second.token});
    };
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(symbols.size()); ++i) consider(i);
    while (!queue.empty()) {
      const Candidate next = queue.top();
      queue.pop();
      Symbol& left = symbols[static_cast<std::size_t>(next.left)];
      if (left.gone || left.after < 0 || left.token != next.first) continue;
      Symbol& right = symbols[static_cast<std::size_t>(left.after)];
      if (right.token != next.second) continue;
      left.token = next.token;
      left.after = right.after;
      right.gone = true;
      if (left.after >= 0) symbols[static_cast<std::size_t>(left.after)].before = next.left;
      consider(left.before);
      consider(next.left);
    }
    for (const Symbol& symbol : symbols)
      if (!symbol.gone) tokens.push_back(symbol.token);
  }

  /// Converts a word to the form in files.
  std::string lettered(std::string_view word) const {
    std::string text;
    for (const char each : word) text += letters_[static_cast<unsigned char>(each)];
    return text;
  }

  BytePairParts parts_;
  const std::array<std::string, 256> letters_ = byte_letters();
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::array<std::int32_t, 256> bytes_{};  ///< -1: no token
  std::int32_t unknown_ = -1;
  std::int64_t size_ = 0;
  mutable std::unordered_map<std::string, Tokens> known_;
  mutable std::int64_t left_out_ = 0;
};

}  // namespace

Result<std::unordered_map<std::string, std::int32_t>> tokens_of(const nlohmann::json& vocabulary) {
  if (!vocabulary.is_object() || vocabulary.empty() || vocabulary.size() > most_tokens)
    return damaged("vocabulary", "it is not a JSON object of tokens and their numbers");
  std::unordered_map<std::string, std::int32_t> tokens;
  for (const auto& [token, number] : vocabulary.items()) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() >= most_tokens)
      return damaged("vocabulary", fmt::format("a token has the number {}", number.dump()));
    tokens.emplace(token, number.get<std::int32_t>());
  }
  return tokens;
}

std::optional<std::int32_t> end_of_document_of(const std::unordered_map<std::string, std::int32_t>& tokens) {
  for (const char* const name : {"<|endoftext|>", "<|end_of_text|>", "</s>"})
    if (const auto found = tokens.find(name); found != tokens.end()) return found->second;
  return std::nullopt;
}

Result<std::unique_ptr<Tokenizer>> make_byte_pair(BytePairParts parts, const std::string& merges) {
  auto tokenizer = std::make_unique<BytePair>();
  if (auto taken = tokenizer->take(std::move(parts), merges); !taken) return tl::unexpected(taken.error());
  return tokenizer;
}

Result<std::unique_ptr<Tokenizer>> make_byte_pair(const NamedText& vocabulary, const NamedText& merges) {
  auto tokens = tokens_of(nlohmann::json::parse(vocabulary.text, nullptr, false));
  if (!tokens) {
    tokens.error().where = vocabulary.name;
    return tl::unexpected(tokens.error());
  }
  BytePairParts parts{.tokens = *std::move(tokens), .merges = {}, .unknown = {}};
  std::string_view text = merges.text;
  for (std::size_t place = 1; !text.empty(); ++place) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (place == 1 && line.starts_with("#version"))) continue;
    const auto space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      return damaged("list of merges", fmt::format("line {} is not two pieces", place), merges.name);
    parts.merges.push_back({std::string(line.substr(0, space)), std::string(line.substr(space + 1)), place});
  }
  return make_byte_pair(std::move(parts), merges.name);
}

std::filesystem::path merges_of(const std::filesystem::path& vocabulary) {
  std::string name = vocabulary.filename().string();
  constexpr std::string_view ending = "vocab.json";
  if (!name.ends_with(ending)) return vocabulary.parent_path() / "merges.txt";
  return vocabulary.parent_path() / (name.substr(0, name.size() - ending.size()) + "merges.txt");
}

}  // namespace accrue::tokenize
