// SPDX-License-Identifier: Apache-2.0
// Drawn from a counter-based generator, like synthetic.cpp: any sample can be made at any time, on any rank.
#include "data/synthetic_sentences.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "accrue/run/base/mix64.h"
#include "accrue/run/facts/sample_places.h"
#include "data/masked_samples.h"
#include "data/synthetic.h"

namespace accrue {
namespace {

constexpr std::uint64_t sentence_stream = 0x5e5e;
constexpr std::uint64_t mask_stream = 0x3a3a;

class Sentences final : public DataSource {
 public:
  Sentences(std::uint64_t seed, const ModelSpec& model, const DataFacts& facts)
      : model_(model),
        seed_(seed),
        train_(facts.samples),
        validation_(facts.validation_samples),
        split_(facts),
        items_(facts.tokens_per_sample),
        symbols_(model.vocabulary - synthetic_special_tokens(model)),
        language_(make_markov_language(seed, symbols_)) {}

  std::int64_t size(Split split) const override { return split == Split::train ? train_ : validation_; }

  Batch batch(Split split, std::span<const std::int64_t> samples) override {
    if (model_.kind == ModelKind::bert) return bert_batch(made<BertItem>(split, samples, &Sentences::bert_item));
    return t5_batch(made<T5Item>(split, samples, &Sentences::t5_item));
  }

 private:
  template <typename Item>
  std::vector<Item> made(Split split, std::span<const std::int64_t> samples,
                         Item (Sentences::*make)(std::int64_t) const) const {
    std::vector<Item> items;
    for (const std::int64_t sample : samples) items.push_back((this->*make)(split_.of(split == Split::train, sample)));
    return items;
  }

  std::uint64_t draw(std::uint64_t stream, std::int64_t sample, std::int64_t index) const {
    return mix64(mix64(seed_, stream, static_cast<std::uint64_t>(sample)), stream, static_cast<std::uint64_t>(index));
  }
  /// The i-th token from the end of the vocabulary.
  std::int64_t special(std::int64_t i) const { return model_.vocabulary - 1 - i; }
  /// Up to a quarter of a sample is padding.
  std::int64_t padding_of(std::int64_t sample, std::int64_t room) const {
    return static_cast<std::int64_t>(draw(sentence_stream, sample, 0) % static_cast<std::uint64_t>(room / 4 + 1));
  }
  std::vector<std::int64_t> text_of(std::int64_t sample, std::int64_t length) const {
    std::vector<std::int64_t> text(static_cast<std::size_t>(length));
    language_->read(sample, text.data(), length);
    return text;
  }
  /// Returns one place in each of `count` equal stretches of [0, size), none in a stretch's last `width - 1`.
  std::vector<std::int64_t> places(std::int64_t sample, std::int64_t size, std::int64_t count,
                                   std::int64_t width) const {
    std::vector<std::int64_t> found;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t from = i * size / count, room = (i + 1) * size / count - from - width + 1;
      found.push_back(from + static_cast<std::int64_t>(draw(mask_stream, sample, i) %
                                                       static_cast<std::uint64_t>(std::max<std::int64_t>(room, 1))));
    }
    return found;
  }

  /// pad, mask, sep and cls are the last tokens.
  BertItem bert_item(std::int64_t sample) const {
    const std::int64_t room = model_.context - 3, length = room - padding_of(sample, room - items_);
    std::vector<std::int64_t> text = text_of(sample, length);
    const auto middle = text.begin() + length / 2;
    BertItem item;
    item.is_random = draw(sentence_stream, sample, 1) % 2 == 1;
    if (item.is_random) std::rotate(text.begin(), middle, text.end());
    const std::int64_t first_length = item.is_random ? length - length / 2 : length / 2;
    item.labels.assign(static_cast<std::size_t>(model_.context), -1);
    item.loss_mask.assign(item.labels.size(), 0);
    item.text.push_back(special(3));
    item.text.insert(item.text.end(), text.begin(), text.begin() + first_length);
    item.text.push_back(special(2));
    item.text.insert(item.text.end(), text.begin() + first_length, text.end());
    item.text.push_back(special(2));
    for (const std::int64_t place : places(sample, length, items_, 1)) {
      const auto at = static_cast<std::size_t>(place + (place < first_length ? 1 : 2));
      item.labels[at] = item.text[at];
      item.loss_mask[at] = 1;
      const std::uint64_t tenth = draw(mask_stream, sample, place + model_.context) % 10;
      if (tenth < 8) item.text[at] = special(1);
      if (tenth == 8)
        item.text[at] = static_cast<std::int64_t>(draw(mask_stream, sample, place + 2 * model_.context) %
                                                  static_cast<std::uint64_t>(symbols_));
    }
    const std::size_t end = item.text.size();
    item.types.assign(item.labels.size(), 0);
    std::fill(item.types.begin() + first_length + 2, item.types.begin() + static_cast<std::ptrdiff_t>(end), 1);
    item.padding_mask.assign(item.labels.size(), 0);
    std::fill_n(item.padding_mask.begin(), end, 1);
    item.text.resize(item.labels.size(), special(0));
    return item;
  }

  /// pad, bos and eos are the last tokens, the sentinels those before them.
  T5Item t5_item(std::int64_t sample) const {
    const std::int64_t spans = synthetic_spans(model_);
    const std::int64_t room = model_.context + spans * (synthetic_span - 1);
    const std::int64_t length = room - padding_of(sample, room - spans * synthetic_span);
    const std::vector<std::int64_t> text = text_of(sample, length);
    T5Item item;
    item.decoder_text.push_back(special(1));
    std::int64_t next = 0, sentinel = 3;
    for (const std::int64_t place : places(sample, length, spans, synthetic_span)) {
      item.encoder_text.insert(item.encoder_text.end(), text.begin() + next, text.begin() + place);
      item.encoder_text.push_back(special(sentinel));
      item.decoder_text.push_back(special(sentinel++));
      next = place + synthetic_span;
      item.decoder_text.insert(item.decoder_text.end(), text.begin() + place, text.begin() + next);
    }
    item.encoder_text.insert(item.encoder_text.end(), text.begin() + next, text.end());
    item.labels.assign(item.decoder_text.begin() + 1, item.decoder_text.end());
    item.labels.push_back(special(2));
    const auto decoder = static_cast<std::size_t>(model_.tokens_of_decoder());
    item.loss_mask.assign(item.labels.size(), 1);
    item.loss_mask.resize(decoder, 0);
    item.decoder_mask = item.loss_mask;
    item.labels.resize(decoder, -1);
    item.decoder_text.resize(decoder, special(0));
    const auto context = static_cast<std::size_t>(model_.context);
    item.encoder_mask.assign(item.encoder_text.size(), 1);
    item.encoder_mask.resize(context, 0);
    item.encoder_text.resize(context, special(0));
    return item;
  }

  ModelSpec model_;
  std::uint64_t seed_;
  std::int64_t train_;
  std::int64_t validation_;
  SamplePlaces split_;
  std::int64_t items_;
  std::int64_t symbols_;
  std::unique_ptr<TokenStore> language_;
};

}  // namespace

std::unique_ptr<DataSource> make_synthetic_sentences(std::uint64_t seed, const ModelSpec& model,
                                                     const DataFacts& facts) {
  return std::make_unique<Sentences>(seed, model, facts);
}

}  // namespace accrue
