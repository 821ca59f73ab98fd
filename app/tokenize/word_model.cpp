// SPDX-License-Identifier: Apache-2.0
#include "word_model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace accrue::tokenize {
namespace {

class WordLevel final : public WordModel {
 public:
  WordLevel(Vocabulary tokens, std::int32_t unknown) : WordModel(std::move(tokens)), unknown_(unknown) {}

  Result<void> append(std::string_view word, Tokens& tokens) const override {
    const std::int32_t token = number_of(std::string(word));
    tokens.push_back(token < 0 ? unknown_ : token);
    return {};
  }

 private:
  std::int32_t unknown_;
};

}  // namespace

std::int32_t WordModel::number_of(const std::string& name) const {
  const auto found = vocabulary_.find(name);
  return found == vocabulary_.end() ? -1 : found->second;
}

bool WordModel::append_bytes(std::string_view text, Tokens& tokens) const {
  const std::size_t before = tokens.size();
  for (const char each : text) {
    const std::int32_t token = number_of(fmt::format("<0x{:02X}>", static_cast<unsigned char>(each)));
    if (token < 0) {
      tokens.resize(before);
      return false;
    }
    tokens.push_back(token);
  }
  return true;
}

Result<Vocabulary> vocabulary_of(const nlohmann::json& json) {
  const auto damaged = [](const std::string& what) {
    return fail(ErrorCode::data, "the vocabulary of the tokenizer is damaged: " + what, {},
                "Give vocab.json and merges.txt, or tokenizer.json, as they were published");
  };
  if (!json.is_object() || json.empty() || json.size() > most_tokens)
    return damaged("it is not a JSON object of tokens and their numbers");
  Vocabulary tokens;
  for (const auto& [token, number] : json.items()) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() >= most_tokens)
      return damaged(fmt::format("a token has the number {}", number.dump()));
    tokens.emplace(token, number.get<std::int32_t>());
  }
  return tokens;
}

Result<std::unique_ptr<WordModel>> make_word_level(Vocabulary tokens, const std::string& unknown) {
  const auto found = tokens.find(unknown);
  if (found == tokens.end())
    return fail(ErrorCode::data,
                fmt::format("the vocabulary of the tokenizer is damaged: it has no token {}", unknown));
  const std::int32_t number = found->second;
  return std::make_unique<WordLevel>(std::move(tokens), number);
}

}  // namespace accrue::tokenize
