// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/t5_dataset.h"

#include <fmt/format.h>

#include "sentence_sample.h"

namespace accrue {
namespace {

/// bos and eos.
constexpr std::int64_t t5_added_tokens = 2;

/// Joins the sentences into one row, cut at the target length.
std::vector<std::int64_t> joined(const SentenceSample& sample, bool& truncated) {
  std::vector<std::int64_t> tokens;
  for (const auto& sentence : sample.sentences) tokens.insert(tokens.end(), sentence.begin(), sentence.end());
  truncated = static_cast<std::int64_t>(tokens.size()) > sample.target;
  if (truncated) tokens.resize(static_cast<std::size_t>(sample.target));
  return tokens;
}

std::vector<std::int64_t> ones(std::size_t count, std::int64_t length) {
  std::vector<std::int64_t> row(static_cast<std::size_t>(length), 0);
  std::fill_n(row.begin(), count, 1);
  return row;
}

}  // namespace

Result<SentenceIndexRequest> T5Dataset::index_request(const T5Request& request) {
  if (request.sequence_length < t5_added_tokens + 2)
    return fail(ErrorCode::config,
                fmt::format("a T5's sample of {} tokens has no room for text", request.sequence_length), {},
                "Give a sequence length of at least 4");
  return SentenceIndexRequest{.maximum = request.sequence_length - t5_added_tokens,
                              .minimum_sentences = 1,
                              .samples = request.samples,
                              .short_probability = request.short_probability,
                              .seed = request.seed};
}

Result<T5Dataset> T5Dataset::create(std::shared_ptr<const IndexedDataset> dataset, IndexArray index,
                                    const T5Request& request, SpecialTokens special) {
  if (auto asked = index_request(request); !asked) return tl::unexpected(asked.error());
  if (request.decoder_sequence_length < 1)
    return fail(ErrorCode::config,
                fmt::format("a decoder of {} tokens cannot be fed", request.decoder_sequence_length));
  if (auto checked = check_masking(request.masking); !checked) return tl::unexpected(checked.error());
  for (const auto& [token, name] :
       {std::pair(special.mask, "mask"), {special.pad, "pad"}, {special.bos, "bos"}, {special.eos, "eos"}})
    if (auto checked = check_special(special, token, name); !checked) return tl::unexpected(checked.error());
  if (special.sentinels.empty())
    return fail(ErrorCode::config, "the samples need sentinel tokens, and the tokenizer has none", {},
                "Use a tokenizer that has some, or name the tokens");
  for (const std::int64_t sentinel : special.sentinels)
    if (auto checked = check_special(special, sentinel, "sentinel"); !checked) return tl::unexpected(checked.error());
  return T5Dataset(std::move(dataset), std::move(index), request, std::move(special));
}

Result<T5Item> T5Dataset::item(std::int64_t item) const {
  const auto sample = read_sentences(*dataset_, index_, item, request_.sequence_length - t5_added_tokens, special_);
  if (!sample) return tl::unexpected(sample.error());
  T5Item made;
  const std::vector<std::int64_t> tokens = joined(*sample, made.truncated);
  RandomState random(request_.seed + static_cast<std::uint32_t>(item));
  const MaskedText masked = mask_tokens(tokens, sample->target, request_.masking, special_, random,
                                        [this](RandomState&) { return std::optional(special_.mask); });
  if (masked.spans.size() > special_.sentinels.size())
    return fail(ErrorCode::data,
                fmt::format("sample {} has {} masked spans, and the tokenizer {} sentinels", item, masked.spans.size(),
                            special_.sentinels.size()),
                dataset_->prefix().string(), "Mask fewer tokens, or use a tokenizer with more sentinels");
  made.decoder_text = {special_.bos};
  std::size_t at = 0;
  for (std::size_t i = 0; i < masked.spans.size(); ++i) {
    const MaskedSpan& span = masked.spans[i];
    for (; at < static_cast<std::size_t>(span.positions.front()); ++at) made.encoder_text.push_back(masked.tokens[at]);
    at = static_cast<std::size_t>(span.positions.back()) + 1;
    made.encoder_text.push_back(special_.sentinels[i]);
    made.decoder_text.push_back(special_.sentinels[i]);
    made.decoder_text.insert(made.decoder_text.end(), span.labels.begin(), span.labels.end());
  }
  for (; at < masked.tokens.size(); ++at) made.encoder_text.push_back(masked.tokens[at]);
  if (static_cast<std::int64_t>(made.decoder_text.size()) > request_.decoder_sequence_length)
    return fail(ErrorCode::data,
                fmt::format("sample {} gives the decoder {} tokens, and it takes {}", item, made.decoder_text.size(),
                            request_.decoder_sequence_length),
                dataset_->prefix().string(), "Give the decoder a longer sequence, or mask fewer tokens");
  made.labels.assign(made.decoder_text.begin() + 1, made.decoder_text.end());
  made.labels.push_back(special_.eos);
  made.encoder_mask = ones(made.encoder_text.size(), request_.sequence_length);
  made.decoder_mask = made.loss_mask = ones(made.decoder_text.size(), request_.decoder_sequence_length);
  made.encoder_text.resize(static_cast<std::size_t>(request_.sequence_length), special_.pad);
  made.decoder_text.resize(static_cast<std::size_t>(request_.decoder_sequence_length), special_.pad);
  made.labels.resize(static_cast<std::size_t>(request_.decoder_sequence_length), -1);
  return made;
}

}  // namespace accrue
