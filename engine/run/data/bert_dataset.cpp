// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/bert_dataset.h"

#include <deque>

#include "sentence_sample.h"

namespace accrue {
namespace {

using Tokens = std::deque<std::int64_t>;

/// cls, and a sep after each of two segments.
constexpr std::int64_t bert_added_tokens = 3;

struct Segments {
  Tokens a, b;
  bool swapped = false;
  bool truncated = false;
};

Segments divide(const SentenceSample& sample, bool binary_head, RandomState& random) {
  Segments segments;
  auto pivot = static_cast<std::int64_t>(sample.sentences.size());
  if (binary_head) {
    pivot = pivot >= 3 ? random.randint(1, pivot) : 1;
    segments.swapped = random.random() < 0.5;
  }
  for (std::size_t i = 0; i < sample.sentences.size(); ++i) {
    Tokens& segment = static_cast<std::int64_t>(i) < pivot ? segments.a : segments.b;
    segment.insert(segment.end(), sample.sentences[i].begin(), sample.sentences[i].end());
  }
  if (segments.swapped) std::swap(segments.a, segments.b);
  return segments;
}

/// Removes tokens from either end of the longer segment, b in a tie, until both fit.
void truncate(Segments& segments, std::int64_t target, RandomState& random) {
  while (static_cast<std::int64_t>(segments.a.size() + segments.b.size()) > target) {
    Tokens& longer = segments.a.size() > segments.b.size() ? segments.a : segments.b;
    if (random.random() < 0.5)
      longer.pop_front();
    else
      longer.pop_back();
    segments.truncated = true;
  }
}

}  // namespace

Result<SentenceIndexRequest> BertDataset::index_request(const BertRequest& request) {
  if (request.sequence_length < bert_added_tokens + 2)
    return fail(ErrorCode::config,
                "a BERT's sample of " + std::to_string(request.sequence_length) + " tokens has no room for text", {},
                "Give a sequence length of at least 5");
  return SentenceIndexRequest{.maximum = request.sequence_length - bert_added_tokens,
                              .minimum_sentences = request.binary_head ? 2 : 1,
                              .samples = request.samples,
                              .short_probability = request.short_probability,
                              .seed = request.seed};
}

Result<BertDataset> BertDataset::create(std::shared_ptr<const IndexedDataset> dataset, IndexArray index,
                                        const BertRequest& request, SpecialTokens special) {
  if (auto asked = index_request(request); !asked) return tl::unexpected(asked.error());
  if (auto checked = check_masking(request.masking); !checked) return tl::unexpected(checked.error());
  for (const auto& [token, name] :
       {std::pair(special.cls, "cls"), {special.sep, "sep"}, {special.mask, "mask"}, {special.pad, "pad"}})
    if (auto checked = check_special(special, token, name); !checked) return tl::unexpected(checked.error());
  return BertDataset(std::move(dataset), std::move(index), request, std::move(special));
}

Result<BertItem> BertDataset::item(std::int64_t item) const {
  const auto length = static_cast<std::size_t>(request_.sequence_length);
  const auto sample = read_sentences(*dataset_, index_, item, request_.sequence_length - bert_added_tokens, special_);
  if (!sample) return tl::unexpected(sample.error());
  if (request_.binary_head && sample->sentences.size() < 2)
    return fail(ErrorCode::protocol, "sample " + std::to_string(item) + " has one sentence, where two are needed",
                dataset_->prefix().string(), "Build the index again");
  RandomState random(request_.seed + static_cast<std::uint32_t>(item));
  Segments segments = divide(*sample, request_.binary_head, random);
  truncate(segments, sample->target, random);

  std::vector<std::int64_t> tokens = {special_.cls};
  tokens.insert(tokens.end(), segments.a.begin(), segments.a.end());
  tokens.push_back(special_.sep);
  const std::size_t first_of_b = tokens.size();
  if (!segments.b.empty()) {
    tokens.insert(tokens.end(), segments.b.begin(), segments.b.end());
    tokens.push_back(special_.sep);
  }
  // 80 % mask, 10 % a random token, 10 % unchanged.
  const auto mask = [this](RandomState& draw) -> std::optional<std::int64_t> {
    if (draw.random() < 0.8) return special_.mask;
    if (draw.random() >= 0.5) return draw.randint(0, special_.vocabulary);
    return std::nullopt;
  };
  MaskedText masked = mask_tokens(tokens, sample->target, request_.masking, special_, random, mask);

  BertItem made{.text = std::move(masked.tokens),
                .types = std::vector<std::int64_t>(length, 0),
                .labels = std::vector<std::int64_t>(length, -1),
                .loss_mask = std::vector<std::int64_t>(length, 0),
                .padding_mask = std::vector<std::int64_t>(length, 0),
                .is_random = segments.swapped,
                .truncated = segments.truncated};
  std::fill_n(made.padding_mask.begin(), tokens.size(), 1);
  std::fill(made.types.begin() + static_cast<std::ptrdiff_t>(first_of_b),
            made.types.begin() + static_cast<std::ptrdiff_t>(tokens.size()), 1);
  for (const MaskedSpan& span : masked.spans)
    for (std::size_t i = 0; i < span.positions.size(); ++i) {
      const auto at = static_cast<std::size_t>(span.positions[i]);
      made.labels[at] = span.labels[i];
      made.loss_mask[at] = 1;
    }
  made.text.resize(length, special_.pad);
  return made;
}

}  // namespace accrue
