// SPDX-License-Identifier: Apache-2.0
#include "megatron/indexed_text.h"

#include <ATen/ops/empty.h>

#include <charconv>
#include <stdexcept>

#include "accrue/run/blend.h"
#include "accrue/run/dataset_splits.h"
#include "accrue/run/gpt_dataset.h"

namespace accrue::megatron {
namespace {

template <typename T>
T taken(Result<T> result) {
  if (!result) throw std::invalid_argument(result.error().text());
  return *std::move(result);
}

struct Blended {
  std::vector<double> weights;  ///< empty: one prefix
  std::vector<std::string> prefixes;
};

/// "PREFIX", or "WEIGHT PREFIX WEIGHT PREFIX ..." as so many words.
Blended parse(const std::vector<std::string>& data_path) {
  if (data_path.empty()) throw std::invalid_argument("MegatronLMDummyDataLoader: data_path names no data set");
  if (data_path.size() == 1) return {{}, data_path};
  if (data_path.size() % 2 != 0)
    throw std::invalid_argument("MegatronLMDummyDataLoader: data_path is one prefix, or weights and prefixes in turn");
  Blended blended;
  for (std::size_t i = 0; i < data_path.size(); i += 2) {
    const std::string& word = data_path[i];
    double weight = 0.0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), weight);
    if (failed != std::errc{} || end != word.data() + word.size())
      throw std::invalid_argument("MegatronLMDummyDataLoader: \"" + word + "\" in data_path is not a weight");
    blended.weights.push_back(weight);
    blended.prefixes.push_back(data_path[i + 1]);
  }
  return blended;
}

std::shared_ptr<const GptDataset> gpt(const std::string& prefix, const SplitBounds& bounds,
                                      const GptIndexRequest& request) {
  auto dataset = std::make_shared<const IndexedDataset>(taken(IndexedDataset::open(prefix)));
  auto index = taken(build_gpt_index(*dataset, elements_of(bounds, dataset->sequences()), request));
  return std::make_shared<const GptDataset>(dataset, std::move(index), request);
}

at::Tensor rows_of(const std::vector<std::vector<std::int64_t>>& texts, std::int64_t length) {
  at::Tensor rows = at::empty({std::ssize(texts), length}, at::kLong);
  auto* at = rows.mutable_data_ptr<std::int64_t>();
  for (const auto& text : texts) at = std::copy(text.begin(), text.end(), at);
  return rows;
}

}  // namespace

std::vector<MegatronDataset> indexed_text(const MegatronLMDummyDataLoader& loader, std::int64_t sequence_length,
                                          const std::vector<std::int64_t>& samples) {
  const Blended blended = parse(loader.data_path);
  const SplitMatrix matrix = taken(parse_split(loader.split));
  std::vector<MegatronDataset> splits(samples.size());
  for (std::size_t split = 0; split < splits.size(); ++split) {
    if (samples[split] < 1 || !matrix.at(split)) continue;
    BlendSizes sizes{.requested = {samples[split]}, .size = samples[split]};
    if (!blended.weights.empty()) sizes = taken(blend_sizes(blended.weights, samples[split]));
    std::vector<std::shared_ptr<const GptDataset>> sets;
    for (std::size_t i = 0; i < blended.prefixes.size(); ++i)
      sets.push_back(gpt(blended.prefixes[i], *matrix[split],
                         {.sequence_length = sequence_length, .samples = sizes.requested[i], .seed = loader.seed}));
    auto index = std::make_shared<std::optional<BlendIndex>>();
    if (!blended.weights.empty()) *index = taken(build_blend_index(sizes.weights, sizes.size));
    splits[split].samples = blended.weights.empty() ? sets.front()->size() : sizes.size;
    splits[split].fetch = [sets, index, sequence_length](const std::vector<std::int64_t>& rows) {
      std::vector<std::vector<std::int64_t>> texts;
      for (const std::int64_t row : rows) {
        std::size_t set = 0;
        std::int64_t sample = row;
        if (*index) {
          set = static_cast<std::size_t>((*index)->dataset_index.at(row));
          sample = (*index)->dataset_sample_index.at(row);
        }
        texts.push_back(taken(sets[set]->text(sample)));
      }
      return Batch{{"text", rows_of(texts, sequence_length + 1)}};
    };
  }
  return splits;
}

}  // namespace accrue::megatron
