// SPDX-License-Identifier: Apache-2.0
// The most probable sequence of pieces, by Viterbi's algorithm. A character that is no piece gets one that is less
// probable than any; of such neighbours one piece is made.
// Source: Kudo, Subword Regularization; huggingface/tokenizers, models/unigram.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "word_model.h"

namespace accrue::tokenize {
namespace {

constexpr double unknown_penalty = 10.0;

std::size_t character_size(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  return end - at;
}

/// Texts by their bytes.
class Trie {
 public:
  void add(std::string_view text, std::int32_t value) {
    std::uint32_t node = 0;
    for (const char each : text) {
      const auto [next, is_new] = nodes_.try_emplace(key(node, each), static_cast<std::uint32_t>(values_.size()));
      if (is_new) values_.push_back(-1);
      node = next->second;
    }
    values_[node] = value;
  }
  /// Calls see(end, value) for each text that the rest of `text` begins with, shortest first.
  template <typename See>
  void each_prefix(std::string_view text, std::size_t begin, See see) const {
    std::uint32_t node = 0;
    for (std::size_t at = begin; at < text.size();) {
      const auto next = nodes_.find(key(node, text[at++]));
      if (next == nodes_.end()) return;
      node = next->second;
      if (values_[node] >= 0) see(at, values_[node]);
    }
  }

 private:
  static std::uint64_t key(std::uint32_t node, char byte) {
    return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }

  std::unordered_map<std::uint64_t, std::uint32_t> nodes_;
  std::vector<std::int32_t> values_ = {-1};
};

Vocabulary numbers_of(const std::vector<UnigramParts::Piece>& pieces) {
  Vocabulary numbers;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    numbers.insert_or_assign(pieces[i].text, static_cast<std::int32_t>(i));
  return numbers;
}

class Unigram final : public WordModel {
 public:
  explicit Unigram(UnigramParts parts) : WordModel(numbers_of(parts.pieces)), parts_(std::move(parts)) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < parts_.pieces.size(); ++i) {
      trie_.add(parts_.pieces[i].text, static_cast<std::int32_t>(i));
      least = std::min(least, parts_.pieces[i].score);
    }
    unknown_score_ = least - unknown_penalty;
  }

  Result<void> append(std::string_view word, Tokens& tokens) const override {
    const auto best = best_paths(word);
    if (!best) return tl::unexpected(best.error());
    std::vector<std::pair<std::size_t, std::size_t>> pieces;  // begin and end, from the last to the first
    bool unknown = false;
    for (std::size_t end = word.size(); end > 0;) {
      const Path& path = (*best)[end];
      if (std::exchange(unknown, path.piece == parts_.unknown) && unknown)
        pieces.back().first = path.begin;
      else
        pieces.emplace_back(path.begin, end);
      end = path.begin;
    }
    for (auto each = pieces.rbegin(); each != pieces.rend(); ++each)
      append_piece(word.substr(each->first, each->second - each->first), tokens);
    return {};
  }

 private:
  /// The best way to an end.
  struct Path {
    double score = 0.0;
    std::size_t begin = 0;    ///< of its last piece
    std::int32_t piece = -1;  ///< -1: no way leads there
  };

  Result<std::vector<Path>> best_paths(std::string_view word) const {
    std::vector<Path> best(word.size() + 1);
    for (std::size_t begin = 0, size = 0; begin < word.size(); begin += size) {
      size = character_size(word, begin);
      const auto offer = [&, from = best[begin].score](std::size_t end, std::int32_t piece, double score) {
        if (best[end].piece < 0 || from + score > best[end].score) best[end] = {from + score, begin, piece};
      };
      bool covered = false;
      trie_.each_prefix(word, begin, [&](std::size_t end, std::int32_t piece) {
        offer(end, piece, parts_.pieces[static_cast<std::size_t>(piece)].score);
        covered = covered || end == begin + size;
      });
      if (!covered && !parts_.unknown)
        return fail(ErrorCode::data,
                    "the tokenizer has no token for a character of the text, and none for what it lacks");
      if (!covered) offer(begin + size, *parts_.unknown, unknown_score_);
    }
    return best;
  }

  void append_piece(std::string_view piece, Tokens& tokens) const {
    const std::int32_t token = number_of(std::string(piece));
    if (token >= 0)
      tokens.push_back(token);
    else if (!parts_.byte_fallback || !append_bytes(piece, tokens))
      tokens.push_back(*parts_.unknown);
  }

  UnigramParts parts_;
  Trie trie_;
  double unknown_score_ = 0.0;
};

}  // namespace

Result<std::unique_ptr<WordModel>> make_unigram(UnigramParts parts) {
  const auto damaged = [](const char* what) {
    return fail(ErrorCode::data, fmt::format("the vocabulary of the tokenizer is damaged: {}", what), {},
                "Give the file as it was published");
  };
  if (parts.pieces.empty() || parts.pieces.size() > most_tokens) return damaged("it has no pieces, or too many");
  if (parts.unknown && (*parts.unknown < 0 || *parts.unknown >= std::ssize(parts.pieces)))
    return damaged("unk_id is no piece");
  return std::make_unique<Unigram>(std::move(parts));
}

}  // namespace accrue::tokenize
