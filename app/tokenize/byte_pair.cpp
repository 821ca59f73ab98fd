// SPDX-License-Identifier: Apache-2.0
// GPT-2's byte-level pairs. A text is cut into words, each with the space before it; a word begins as its bytes, and
// the two neighbours whose merge stands first in the list become one, until no merge is left. Files name bytes by
// letters: those that print by themselves, the others by the letters from U+0100 on.
// Source: Radford et al., Language Models are Unsupervised Multitask Learners; openai/gpt-2, src/encoder.py.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>

#include "tokenizer.h"
#include "unicode.h"

namespace accrue::tokenize {
namespace {

constexpr std::size_t most_tokens = 4'000'000;

/// The letter that a file writes for each byte.
std::array<std::string, 256> byte_letters() {
  std::array<std::string, 256> letters;
  UChar32 next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    append_utf8(letters[static_cast<std::size_t>(byte)], prints ? byte : next++);
  }
  return letters;
}

/// Where the word that begins at `at` ends, by the pattern of GPT-2:
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
  // White space leaves its last character to the word that follows.
  return end < points.size() && end - at > 1 ? end - 1 : end;
}

struct Merge {
  std::int32_t rank;
  std::int32_t token;  ///< that they become
};

class BytePair final : public Tokenizer {
 public:
  Result<void> read(std::string_view vocabulary, std::string_view merges) {
    if (auto read = read_vocabulary(vocabulary); !read) return read;
    const auto letters = byte_letters();
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const auto found = tokens_.find(letters[byte]);
      if (found == tokens_.end()) return damaged("vocabulary", fmt::format("it has no token for the byte {}", byte));
      bytes_[byte] = found->second;
    }
    return read_merges(merges);
  }

  Tokens encode(std::string_view text) const override {
    Tokens tokens;
    const CodePoints points = code_points(text);
    std::string word;
    for (std::size_t at = 0; at < points.size();) {
      const std::size_t end = word_end(points, at);
      word.clear();
      for (; at < end; ++at) append_utf8(word, points[at]);
      append_word(word, tokens);
    }
    return tokens;
  }

  /// What a model writes may end within a character.
  std::string decode(const Tokens& tokens) const override {
    std::unordered_map<std::int32_t, const std::string*> names;
    for (const auto& [name, token] : tokens_) names.emplace(token, &name);
    std::unordered_map<std::string, char> bytes;
    const auto letters = byte_letters();
    for (std::size_t byte = 0; byte < letters.size(); ++byte) bytes.emplace(letters[byte], static_cast<char>(byte));
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
    if (const auto found = tokens_.find("<|endoftext|>"); found != tokens_.end()) facts.end_of_document = found->second;
    return facts;
  }

 private:
  static tl::unexpected<Error> damaged(const char* file, const std::string& what) {
    return fail(ErrorCode::data, fmt::format("the {} of the tokenizer is damaged: {}", file, what), {},
                "Give vocab.json and merges.txt as they were published");
  }

  Result<void> read_vocabulary(std::string_view text) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object() || json.empty() || json.size() > most_tokens)
      return damaged("vocabulary", "it is not a JSON object of tokens and their numbers");
    for (const auto& [token, number] : json.items()) {
      if (!number.is_number_unsigned() || number.get<std::uint64_t>() >= most_tokens)
        return damaged("vocabulary", fmt::format("a token has the number {}", number.dump()));
      tokens_.emplace(token, number.get<std::int32_t>());
      size_ = std::max<std::int64_t>(size_, number.get<std::int64_t>() + 1);
    }
    return {};
  }

  Result<void> read_merges(std::string_view text) {
    std::int32_t rank = 0;
    for (std::size_t line_number = 1; !text.empty(); ++line_number) {
      std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() || (line_number == 1 && line.starts_with("#version"))) continue;
      const auto space = line.find(' ');
      const auto wrong = [&](const char* what) {
        return damaged("list of merges", fmt::format("line {} {}", line_number, what));
      };
      if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
        return wrong("is not two pieces");
      const auto left = tokens_.find(std::string(line.substr(0, space)));
      const auto right = tokens_.find(std::string(line.substr(space + 1)));
      if (left == tokens_.end() || right == tokens_.end()) return wrong("has a piece that the vocabulary lacks");
      const auto both = tokens_.find(left->first + right->first);
      if (both == tokens_.end()) return wrong("makes a token that the vocabulary lacks");
      merges_.emplace(key(left->second, right->second), Merge{rank++, both->second});
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
    std::int32_t left;           ///< where the left one stands
    std::int32_t first, second;  ///< tokens; other ones by now: the candidate is stale
    std::int32_t token;
    bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : left > other.left; }
  };

  /// Most words of a text have come before.
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
    for (std::size_t i = 0; i < word.size(); ++i) {
      const auto at = static_cast<std::int32_t>(i);
      symbols.push_back(
          {bytes_[static_cast<unsigned char>(word[i])], at - 1, i + 1 < word.size() ? at + 1 : -1, false});
    }
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

  std::unordered_map<std::string, std::int32_t> tokens_;
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::array<std::int32_t, 256> bytes_{};
  std::int64_t size_ = 0;
  mutable std::unordered_map<std::string, Tokens> known_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_byte_pair(std::string_view vocabulary, std::string_view merges) {
  auto tokenizer = std::make_unique<BytePair>();
  if (auto read = tokenizer->read(vocabulary, merges); !read) return tl::unexpected(read.error());
  return tokenizer;
}

std::filesystem::path merges_of(const std::filesystem::path& vocabulary) {
  std::string name = vocabulary.filename().string();
  constexpr std::string_view ending = "vocab.json";
  if (!name.ends_with(ending)) return vocabulary.parent_path() / "merges.txt";
  return vocabulary.parent_path() / (name.substr(0, name.size() - ending.size()) + "merges.txt");
}

}  // namespace accrue::tokenize
