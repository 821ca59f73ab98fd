// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tokenizer.h"
#include "unicode.h"

namespace accrue::tokenize {
namespace {

/// Start of the white space at the end of a text.
std::size_t space_at_end(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0) {
    std::size_t at = begin - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    if (!is_space(code_points(text.substr(at, begin - at)).front())) break;
    begin = at;
  }
  return begin;
}

class AddedTokens final : public Tokenizer {
 public:
  AddedTokens(std::unique_ptr<Tokenizer> inner, std::vector<AddedToken> added)
      : inner_(std::move(inner)), added_(std::move(added)) {
    std::ranges::stable_sort(
        added_, [](const AddedToken& a, const AddedToken& b) { return a.content.size() > b.content.size(); });
    for (std::size_t i = 0; i < added_.size(); ++i)
      by_first_[added_[i].early ? 1 : 0][static_cast<unsigned char>(added_[i].content[0])].push_back(i);
  }

  Result<Tokens> encode(std::string_view text, bool goes_on) const override {
    Tokens tokens;
    if (auto encoded = append(text, goes_on, true, tokens); !encoded) return tl::unexpected(encoded.error());
    return tokens;
  }

  std::int64_t left_out() const override { return inner_->left_out(); }

  std::string decode(const Tokens& tokens) const override {
    std::unordered_map<std::int32_t, const std::string*> contents;
    for (const AddedToken& each : added_) contents.emplace(each.token, &each.content);
    std::string text;
    Tokens others;
    const auto end_others = [&] {
      text += inner_->decode(others);
      others.clear();
    };
    for (const std::int32_t token : tokens) {
      const auto added = contents.find(token);
      if (added == contents.end()) {
        others.push_back(token);
        continue;
      }
      end_others();
      text += *added->second;
    }
    end_others();
    return text;
  }

  DatasetSidecar facts() const override {
    DatasetSidecar facts = inner_->facts();
    std::unordered_map<std::string, std::int32_t> numbers;
    for (const AddedToken& each : added_) {
      facts.special.vocabulary = std::max<std::int64_t>(facts.special.vocabulary, std::int64_t{each.token} + 1);
      numbers.emplace(each.content, each.token);
    }
    if (!facts.special.continues.empty())
      facts.special.continues.resize(static_cast<std::size_t>(facts.special.vocabulary), false);
    if (const auto end = end_of_document_of(numbers)) facts.end_of_document = end;
    return facts;
  }

 private:
  /// The longest added token at this place.
  const AddedToken* token_at(std::string_view text, std::size_t at, bool early) const {
    for (const std::size_t each : by_first_[early ? 1 : 0][static_cast<unsigned char>(text[at])])
      if (text.substr(at).starts_with(added_[each].content)) return &added_[each];
    return nullptr;
  }

  /// First searches the early tokens, then the others in the remaining text, then uses the inner tokenizer.
  Result<void> append(std::string_view text, bool goes_on, bool early, Tokens& tokens) const {
    const auto between = [&](std::string_view part) -> Result<void> {
      if (part.empty()) return {};
      if (early) return append(part, goes_on, false, tokens);
      const auto encoded = inner_->encode(part, goes_on);
      if (!encoded) return tl::unexpected(encoded.error());
      tokens.insert(tokens.end(), encoded->begin(), encoded->end());
      return {};
    };
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      const AddedToken* const found = token_at(text, at, early);
      if (found == nullptr) {
        ++at;
        continue;
      }
      std::string_view before = text.substr(begin, at - begin);
      if (found->takes_space_before) before = before.substr(0, space_at_end(before));
      if (auto appended = between(before); !appended) return appended;
      tokens.push_back(found->token);
      goes_on = false;
      begin = at += found->content.size();
    }
    return between(text.substr(begin));
  }

  std::unique_ptr<Tokenizer> inner_;
  std::vector<AddedToken> added_;              ///< longest first
  std::vector<std::size_t> by_first_[2][256];  ///< indices of non-early and early ones, by first byte
};

}  // namespace

std::unique_ptr<Tokenizer> with_added_tokens(std::unique_ptr<Tokenizer> inner, std::vector<AddedToken> added) {
  if (added.empty()) return inner;
  return std::make_unique<AddedTokens>(std::move(inner), std::move(added));
}

}  // namespace accrue::tokenize
