// SPDX-License-Identifier: Apache-2.0
// Source: Devlin et al., BERT; google-research/bert, tokenization.py.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "word_model.h"

namespace accrue::tokenize {
namespace {

bool continues_character(char each) {
  return (static_cast<unsigned char>(each) & 0xC0) == 0x80;
}

class WordPiece final : public WordModel {
 public:
  WordPiece(WordPieceParts parts, std::int32_t unknown)
      : WordModel(std::move(parts.tokens)),
        prefix_(std::move(parts.prefix)),
        longest_word_(parts.longest_word),
        unknown_(unknown) {
    for (const auto& [token, number] : vocabulary()) longest_ = std::max(longest_, token.size());
  }

  Result<void> append(std::string_view word, Tokens& tokens) const override {
    const std::size_t before = tokens.size();
    const auto points = static_cast<std::size_t>(std::ranges::count_if(word, std::not_fn(continues_character)));
    bool known = points <= longest_word_;
    for (std::size_t begin = 0; known && begin < word.size();) {
      const std::size_t end = end_of_piece(word, begin, tokens);
      known = end > begin;
      begin = end;
    }
    if (known) return {};
    tokens.resize(before);
    tokens.push_back(unknown_);
    return {};
  }

 private:
  /// Adds the longest piece that begins here. Returns its end; `begin`: there is none.
  std::size_t end_of_piece(std::string_view word, std::size_t begin, Tokens& tokens) const {
    for (std::size_t end = std::min(word.size(), begin + longest_); end > begin; --end) {
      if (end < word.size() && continues_character(word[end])) continue;
      const std::int32_t token = number_of((begin > 0 ? prefix_ : "") + std::string(word.substr(begin, end - begin)));
      if (token < 0) continue;
      tokens.push_back(token);
      return end;
    }
    return begin;
  }

  std::string prefix_;
  std::size_t longest_word_;
  std::size_t longest_ = 0;  ///< bytes of the longest token
  std::int32_t unknown_;
};

}  // namespace

Result<std::unique_ptr<WordModel>> make_word_piece(WordPieceParts parts) {
  const auto unknown = parts.tokens.find(parts.unknown);
  if (unknown == parts.tokens.end())
    return fail(ErrorCode::data,
                fmt::format("the vocabulary of the tokenizer is damaged: it has no token {}", parts.unknown), {},
                "Give vocab.txt as it was published, with a token a line");
  const std::int32_t number = unknown->second;
  return std::make_unique<WordPiece>(std::move(parts), number);
}

}  // namespace accrue::tokenize
