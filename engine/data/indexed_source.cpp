// SPDX-License-Identifier: Apache-2.0
#include "data/indexed_source.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "accrue/run/data/data_split.h"
#include "data/masked_samples.h"

namespace accrue {
namespace {

at::Tensor rows(std::int64_t count, std::int64_t length) {
  return at::empty({count, length}, at::kLong);
}

class IndexedSource final : public DataSource {
 public:
  IndexedSource(const RunSpec& spec, IndexedSamples training, IndexedSamples validation)
      : spec_(spec), training_(std::move(training)), validation_(std::move(validation)) {}

  std::int64_t size(Split split) const override { return of(split).size(); }

  Batch batch(Split split, std::span<const std::int64_t> samples) override {
    if (spec_.model.kind == ModelKind::bert) return bert_batch(items(split, samples, &IndexedSamples::bert));
    if (spec_.model.kind == ModelKind::t5) return t5_batch(items(split, samples, &IndexedSamples::t5));
    return gpt_batch(items(split, samples, &IndexedSamples::gpt), spec_.data, spec_.model.context);
  }

 private:
  template <typename Item>
  std::vector<Item> items(Split split, std::span<const std::int64_t> samples,
                          Result<Item> (IndexedSamples::*read)(std::int64_t) const) const {
    std::vector<Item> read_items;
    for (const std::int64_t sample : samples) read_items.push_back((of(split).*read)(sample).value());
    return read_items;
  }
  const IndexedSamples& of(Split split) const { return split == Split::train ? training_ : validation_; }

  RunSpec spec_;
  IndexedSamples training_;
  IndexedSamples validation_;
};

}  // namespace

Batch gpt_batch(std::span<const GptItem> items, const DataSpec& data, std::int64_t context) {
  const auto count = static_cast<std::int64_t>(items.size());
  Batch batch{.inputs = rows(count, context), .targets = rows(count, context), .samples = count};
  if (data.reset_positions) batch.positions = rows(count, context);
  if (data.reset_attention) batch.document_starts = rows(count, context);
  for (std::int64_t row = 0; row < count; ++row) {
    const GptItem& item = items[static_cast<std::size_t>(row)];
    const auto at = [row, context](at::Tensor& tensor) {
      return tensor.mutable_data_ptr<std::int64_t>() + row * context;
    };
    std::ranges::copy(item.tokens, at(batch.inputs));
    std::int64_t* targets = at(batch.targets);
    for (std::size_t i = 0; i < item.labels.size(); ++i) {
      const bool ended = data.mask_end_of_document && item.tokens[i] == data.end_of_document;
      const bool counts = item.loss_mask[i] > 0 && !ended;
      targets[i] = counts ? item.labels[i] : ignored_label;
      batch.items += counts ? 1 : 0;
    }
    if (!data.reset_positions && !data.reset_attention) continue;
    const auto starts = document_starts(item.tokens, data.end_of_document.value_or(-1));
    if (data.reset_attention) std::ranges::copy(starts, at(batch.document_starts));
    if (data.reset_positions)
      for (std::size_t i = 0; i < starts.size(); ++i) at(batch.positions)[i] = static_cast<std::int64_t>(i) - starts[i];
  }
  return batch;
}

Result<std::unique_ptr<DataSource>> make_indexed_source(const RunSpec& spec, const IndexedCorpus& corpus,
                                                        const std::filesystem::path& base_dir) {
  auto training = IndexedSamples::open(spec, corpus, DatasetSplit::train, base_dir);
  if (!training) return tl::unexpected(training.error());
  auto validation = IndexedSamples::open(spec, corpus, DatasetSplit::valid, base_dir);
  if (!validation) return tl::unexpected(validation.error());
  return std::make_unique<IndexedSource>(spec, *std::move(training), *std::move(validation));
}

}  // namespace accrue
