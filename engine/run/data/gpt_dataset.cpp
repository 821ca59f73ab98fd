// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/gpt_dataset.h"

#include <fmt/format.h>

#include <algorithm>

namespace accrue {

Result<std::vector<TextPiece>> GptDataset::pieces(std::int64_t item) const {
  if (item < 0 || item >= size())
    return fail(ErrorCode::data, fmt::format("there is no sample {}: there are {}", item, size()),
                dataset_->prefix().string());
  const auto elsewhere = [&] {
    return fail(ErrorCode::protocol, fmt::format("the index of sample {} belongs to another dataset", item),
                dataset_->prefix().string(), "Build the index again");
  };
  const std::int64_t sample = index_.shuffle_index.at(item), extra = request_.extra();
  if (sample < 0 || sample + 1 >= index_.sample_index.size() || index_.sample_index.columns() != 2) return elsewhere();
  const std::int64_t first = index_.sample_index.at(sample, 0), last = index_.sample_index.at(sample + 1, 0);
  const std::int64_t from = index_.sample_index.at(sample, 1), to = index_.sample_index.at(sample + 1, 1);
  const std::int64_t wanted = request_.sequence_length + extra;
  if (first < 0 || last < first || last >= index_.document_index.size() || from < 0 || to < -extra) return elsewhere();
  std::vector<TextPiece> pieces;
  std::int64_t tokens = 0;
  for (std::int64_t entry = first; entry <= last; ++entry) {
    const std::int64_t sequence = index_.document_index.at(entry), begin = entry == first ? from : 0;
    const auto length = dataset_->length(sequence);
    if (!length) return elsewhere();
    const std::int64_t end = entry == last ? to + extra : *length;
    if (end > *length || begin > end || tokens + end - begin > wanted) return elsewhere();
    pieces.push_back({sequence, begin, end - begin});
    tokens += end - begin;
  }
  return pieces;
}

Result<std::vector<std::int64_t>> GptDataset::text(std::int64_t item) const {
  const auto pieces = this->pieces(item);
  if (!pieces) return tl::unexpected(pieces.error());
  const auto wanted = static_cast<std::size_t>(request_.sequence_length + request_.extra());
  std::vector<std::int64_t> text;
  text.reserve(wanted);
  for (const TextPiece& piece : *pieces) {
    const auto part = dataset_->get(piece.sequence, piece.offset, piece.length);
    if (!part) return tl::unexpected(part.error());
    text.insert(text.end(), part->begin(), part->end());
  }
  text.resize(wanted, pad_);
  return text;
}

Result<GptItem> GptDataset::item(std::int64_t item) const {
  auto text = this->text(item);
  if (!text) return tl::unexpected(text.error());
  if (!request_.add_extra_token) text->push_back(pad_);
  GptItem sample{
      .tokens = {text->begin(), text->end() - 1}, .labels = {text->begin() + 1, text->end()}, .loss_mask = {}};
  for (const std::int64_t label : sample.labels) sample.loss_mask.push_back(label == pad_ ? 0.0F : 1.0F);
  if (auto left_out = leave_out_prompts(item, sample.loss_mask); !left_out) return tl::unexpected(left_out.error());
  std::replace(sample.tokens.begin(), sample.tokens.end(), pad_, std::int64_t{0});
  std::replace(sample.labels.begin(), sample.labels.end(), pad_, std::int64_t{0});
  return sample;
}

/// The label at a place is the token behind it.
Result<void> GptDataset::leave_out_prompts(std::int64_t item, std::vector<float>& loss_mask) const {
  if (!dataset_->has_prompts()) return {};
  const auto pieces = this->pieces(item);
  if (!pieces) return tl::unexpected(pieces.error());
  std::int64_t token = 0;
  for (const TextPiece& piece : *pieces) {
    const auto prompt = dataset_->prompt_length(piece.sequence);
    if (!prompt) return tl::unexpected(prompt.error());
    const std::int64_t end = token + std::clamp<std::int64_t>(*prompt - piece.offset, 0, piece.length);
    for (std::int64_t each = std::max<std::int64_t>(token, 1); each < end; ++each)
      loss_mask[static_cast<std::size_t>(each - 1)] = 0.0F;
    token += piece.length;
  }
  return {};
}

Result<GptItem> GptDataset::padding_item() const {
  auto sample = item(0);
  if (sample) std::fill(sample->loss_mask.begin(), sample->loss_mask.end(), 0.0F);
  return sample;
}

}  // namespace accrue
