// SPDX-License-Identifier: Apache-2.0
#include "sentence_sample.h"

#include <fmt/format.h>

#include "accrue/run/data/index_array.h"

namespace accrue {

Result<SentenceSample> read_sentences(const IndexedDataset& dataset, const IndexArray& index, std::int64_t item,
                                      std::int64_t maximum, const SpecialTokens& special) {
  if (item < 0 || item >= index.size())
    return fail(ErrorCode::data, fmt::format("there is no sample {}: there are {}", item, index.size()),
                dataset.prefix().string());
  const bool table = index.columns() == 3;
  const std::int64_t begin = table ? index.at(item, 0) : -1, end = table ? index.at(item, 1) : -1;
  SentenceSample sample{.sentences = {}, .target = table ? index.at(item, 2) : 0};
  if (begin < 0 || end <= begin || end > dataset.sequences() || sample.target < 2 || sample.target > maximum)
    return fail(ErrorCode::protocol, fmt::format("the index of sample {} belongs to another dataset", item),
                dataset.prefix().string(), "Build the index again");
  for (std::int64_t sequence = begin; sequence < end; ++sequence) {
    auto tokens = dataset.get(sequence);
    if (!tokens) return tl::unexpected(tokens.error());
    for (const std::int64_t token : *tokens)
      if (token < 0 || token >= special.vocabulary)
        return fail(ErrorCode::data,
                    fmt::format("sequence {} holds the token {}, outside the vocabulary of {}", sequence, token,
                                special.vocabulary),
                    dataset.prefix().string(),
                    token < 0 ? "Build the dataset again: a token is a number from 0"
                              : "Use the tokenizer that the dataset was built with");
    sample.sentences.push_back(*std::move(tokens));
  }
  return sample;
}

Result<void> check_masking(const MaskingRule& rule) {
  if (!(rule.probability > 0 && rule.probability < 1))
    return fail(ErrorCode::config,
                fmt::format("the share {} of masked tokens is not between 0 and 1", rule.probability));
  if (rule.max_words < 1 || rule.max_words > 1000)
    return fail(ErrorCode::config, fmt::format("masked runs of at most {} words cannot be drawn", rule.max_words), {},
                "Give 1 to 1000 words");
  return {};
}

Result<void> check_special(const SpecialTokens& special, std::int64_t token, std::string_view name) {
  if (token >= 0 && token < special.vocabulary) return {};
  const std::string has =
      token < 0 ? std::string("none") : fmt::format("{}, outside its {} tokens", token, special.vocabulary);
  return fail(ErrorCode::config, fmt::format("the samples need a {} token, and the tokenizer has {}", name, has), {},
              "Use a tokenizer that has one, or name the token");
}

}  // namespace accrue
