// SPDX-License-Identifier: Apache-2.0
#include "added_tokens.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace accrue::tokenize {
namespace {

/// Characters that make a token beside them a part of a word.
bool is_of_word(UChar32 point) {
  constexpr std::uint32_t mask = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return u_hasBinaryProperty(point, UCHAR_ALPHABETIC) != 0 || (U_GET_GC_MASK(point) & mask) != 0 ||
         u_hasBinaryProperty(point, UCHAR_JOIN_CONTROL) != 0;
}

bool stands_alone(const Text& text, std::size_t begin, std::size_t end) {
  UChar32 before = 0, after = 0;
  if (begin > 0) U16_GET(text.data(), std::size_t{0}, begin - 1, text.size(), before);
  if (end < text.size()) U16_GET(text.data(), std::size_t{0}, end, text.size(), after);
  return (begin == 0 || !is_of_word(before)) && (end == text.size() || !is_of_word(after));
}

}  // namespace

void AddedTokenSearch::add(Text content, const AddedToken& token) {
  if (content.empty()) return;
  begins_.set(content[0]);
  auto& lengths = lengths_[content[0]];
  const auto place = std::ranges::lower_bound(lengths, content.size(), std::greater<>());
  if (place == lengths.end() || *place != content.size()) lengths.insert(place, content.size());
  tokens_.try_emplace(std::move(content), token);
}

/// The longest token that begins here, and its end; null and the next place if there is none.
const AddedToken* AddedTokenSearch::token_at(const Text& text, std::size_t at, std::size_t& end) const {
  end = at + 1;
  if (!begins_[text[at]]) return nullptr;
  for (const std::size_t length : lengths_.at(text[at])) {
    if (length > text.size() - at) continue;
    const auto found = tokens_.find(text.substr(at, length));
    if (found == tokens_.end()) continue;
    end = at + length;
    return &found->second;
  }
  return nullptr;
}

Result<void> AddedTokenSearch::walk(const Text& text,
                                    const std::function<Result<void>(std::size_t, std::size_t)>& between,
                                    const std::function<void(std::int32_t)>& found) const {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = 0;
    const AddedToken* const token = token_at(text, at, end);
    if (token == nullptr || (token->alone && !stands_alone(text, at, end))) {
      at = end;
      continue;
    }
    std::size_t from = at, to = end;
    while (token->takes_space_before && from > begin && is_space(text[from - 1])) --from;
    while (token->takes_space_after && to < text.size() && is_space(text[to])) ++to;
    if (from > begin)
      if (auto done = between(begin, from); !done) return done;
    found(token->token);
    begin = at = to;
  }
  return begin < text.size() ? between(begin, text.size()) : Result<void>();
}

}  // namespace accrue::tokenize
