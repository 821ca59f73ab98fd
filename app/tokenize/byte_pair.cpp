// SPDX-License-Identifier: Apache-2.0
// Pairs. A word starts as its bytes, or as its characters. The two neighbours whose merge is earliest in the list are
// joined, until no merge applies. Files name printable bytes by themselves, the others by letters from U+0100 on.
// Source: Radford et al., Language Models are Unsupervised Multitask Learners; openai/gpt-2, src/encoder.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <queue>
#include <utility>

#include "unicode.h"
#include "word_model.h"

namespace accrue::tokenize {
namespace {

/// The letter of each byte in files.
const std::array<std::string, 256>& byte_letters() {
  static const auto letters = [] {
    std::array<std::string, 256> made;
    UChar32 next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool prints = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      append_utf8(made[static_cast<std::size_t>(byte)], prints ? byte : next++);
    }
    return made;
  }();
  return letters;
}

struct Merge {
  std::int32_t rank;
  std::int32_t token;  ///< result of the merge
};

tl::unexpected<Error> damaged(const char* part, const std::string& what, const std::string& file = {}) {
  return fail(ErrorCode::data, fmt::format("the {} of the tokenizer is damaged: {}", part, what), file,
              "Give vocab.json and merges.txt, or tokenizer.json, as they were published");
}

class BytePair final : public WordModel {
 public:
  explicit BytePair(BytePairParts parts) : WordModel(std::move(parts.tokens)), parts_(std::move(parts)) {}

  Result<void> prepare() {
    for (std::size_t byte = 0; byte < bytes_.size(); ++byte) bytes_[byte] = number_of(byte_letters()[byte]);
    if (parts_.unknown) {
      unknown_ = number_of(*parts_.unknown);
      if (unknown_ < 0 && !parts_.bytes)
        return damaged("vocabulary", fmt::format("it lacks {}, the token of what is unknown", *parts_.unknown));
    }
    return take_merges();
  }

  /// Most words of a text are repetitions.
  Result<void> append(std::string_view word, Tokens& tokens) const override {
    constexpr std::size_t most_known = std::size_t{1} << 16, longest_known = 64;
    if (word.size() > longest_known) {
      encode_word(word, tokens);
      return {};
    }
    if (known_.size() >= most_known) known_.clear();
    const auto [known, is_new] = known_.try_emplace(std::string(word));
    if (is_new) {
      const std::int64_t before = left_out_;
      encode_word(word, known->second.tokens);
      known->second.left_out = left_out_ - before;
    } else {
      left_out_ += known->second.left_out;
    }
    tokens.insert(tokens.end(), known->second.tokens.begin(), known->second.tokens.end());
    return {};
  }

  std::int64_t left_out() const override { return left_out_; }

 private:
  struct Known {
    Tokens tokens;
    std::int64_t left_out = 0;
  };
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

  Result<void> take_merges() {
    std::int32_t rank = 0;
    for (const BytePairParts::Merge& merge : parts_.merges) {
      const auto wrong = [&](const char* what) {
        return damaged("list of merges", fmt::format("{} {} {}", parts_.place_name, merge.place, what), parts_.file);
      };
      const std::int32_t left = number_of(merge.left), right = number_of(merge.right);
      if (left < 0 || right < 0) return wrong("has a piece that the vocabulary lacks");
      const bool prefixed = !parts_.prefix.empty() && merge.right.starts_with(parts_.prefix);
      const std::int32_t both = number_of(merge.left + merge.right.substr(prefixed ? parts_.prefix.size() : 0));
      if (both < 0) return wrong("makes a token that the vocabulary lacks");
      merges_.insert_or_assign(key(left, right), Merge{rank++, both});
    }
    return {};
  }

  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  }

  /// Bytes of the unit of a word that begins at `at`.
  std::size_t unit_size(std::string_view word, std::size_t at) const {
    std::size_t end = at + 1;
    while (!parts_.bytes && end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) ++end;
    return end - at;
  }

  /// The token of a unit, or -1.
  std::int32_t token_of(std::string_view unit, bool first, bool last) const {
    if (parts_.bytes && parts_.prefix.empty() && parts_.suffix.empty())
      return bytes_[static_cast<unsigned char>(unit[0])];
    const std::string name = parts_.bytes ? letters_of_bytes(unit) : std::string(unit);
    return number_of((first ? "" : parts_.prefix) + name + (last ? parts_.suffix : ""));
  }

  /// The units of a word, before any is merged.
  Tokens units_of(std::string_view word) const {
    Tokens units;
    bool after_unknown = false;
    for (std::size_t at = 0, size = 0; at < word.size(); at += size) {
      size = unit_size(word, at);
      const std::string_view unit = word.substr(at, size);
      const std::int32_t token = token_of(unit, at == 0, at + size == word.size());
      if (token < 0 && parts_.byte_fallback && append_bytes(unit, units)) continue;
      if (token < 0 && unknown_ < 0) {
        left_out_ += static_cast<std::int64_t>(size);
        continue;
      }
      const bool fused = std::exchange(after_unknown, token < 0) && token < 0 && parts_.fuse_unknown;
      if (!fused) units.push_back(token < 0 ? unknown_ : token);
    }
    return units;
  }

  void encode_word(std::string_view word, Tokens& tokens) const {
    if (parts_.whole_words)
      if (const std::int32_t whole = number_of(parts_.bytes ? letters_of_bytes(word) : std::string(word)); whole >= 0)
        return tokens.push_back(whole);
    merge(units_of(word), tokens);
  }

  void merge(const Tokens& units, Tokens& tokens) const {
    std::vector<Symbol> symbols;
    symbols.reserve(units.size());
    for (const std::int32_t unit : units) {
      const auto at = static_cast<std::int32_t>(symbols.size());
      symbols.push_back({unit, at - 1, at + 1, false});
    }
    if (symbols.empty()) return;
    symbols.back().after = -1;
    const auto symbol = [&symbols](std::int32_t at) -> Symbol& { return symbols[static_cast<std::size_t>(at)]; };
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
    const auto consider = [&](std::int32_t left) {
      if (left < 0 || symbol(left).after < 0) return;
      const std::int32_t first = symbol(left).token, second = symbol(symbol(left).after).token;
      if (const auto found = merges_.find(key(first, second)); found != merges_.end())
        queue.push({found->second.rank, left, first, second, found->second.token});
    };
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(symbols.size()); ++i) consider(i);
    while (!queue.empty()) {
      const Candidate next = queue.top();
      queue.pop();
      Symbol& left = symbol(next.left);
      if (left.gone || left.after < 0 || left.token != next.first) continue;
      Symbol& right = symbol(left.after);
      if (right.token != next.second) continue;
      left.token = next.token;
      left.after = right.after;
      right.gone = true;
      if (left.after >= 0) symbol(left.after).before = next.left;
      consider(left.before);
      consider(next.left);
    }
    for (const Symbol& each : symbols)
      if (!each.gone) tokens.push_back(each.token);
  }

  BytePairParts parts_;
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::array<std::int32_t, 256> bytes_{};  ///< -1: no token
  std::int32_t unknown_ = -1;
  mutable std::unordered_map<std::string, Known> known_;
  mutable std::int64_t left_out_ = 0;
};

}  // namespace

std::string letters_of_bytes(std::string_view bytes) {
  std::string letters;
  for (const char each : bytes) letters += byte_letters()[static_cast<unsigned char>(each)];
  return letters;
}

std::string bytes_of_letters(std::string_view letters) {
  static const auto bytes = [] {
    std::unordered_map<std::string, char> made;
    for (std::size_t byte = 0; byte < 256; ++byte) made.emplace(byte_letters()[byte], static_cast<char>(byte));
    return made;
  }();
  std::string result, letter;
  each_point(to_utf16(letters), [&](UChar32 point, std::size_t, std::size_t) {
    letter.clear();
    append_utf8(letter, point);
    const auto byte = bytes.find(letter);
    if (byte == bytes.end())
      result += letter;
    else
      result.push_back(byte->second);
  });
  return result;
}

Result<std::unique_ptr<WordModel>> make_byte_pair(BytePairParts parts) {
  auto model = std::make_unique<BytePair>(std::move(parts));
  if (auto prepared = model->prepare(); !prepared) return tl::unexpected(prepared.error());
  return model;
}

}  // namespace accrue::tokenize
