// SPDX-License-Identifier: Apache-2.0
#include "megatron/indexed_text.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <span>
#include <stdexcept>

#include "accrue/run/bert_dataset.h"
#include "accrue/run/blend.h"
#include "accrue/run/dataset_sidecar.h"
#include "accrue/run/dataset_splits.h"
#include "accrue/run/gpt_dataset.h"
#include "accrue/run/t5_dataset.h"
#include "data/masked_samples.h"

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

MaskingRule masking_of(MaskingRule rule, const MegatronLMDummyDataLoader& loader) {
  rule.probability = loader.mask_prob;
  return rule;
}

/// The samples of one prefix: each a batch of one row.
struct Samples {
  std::int64_t count = 0;
  std::function<Batch(std::int64_t sample)> row;
};

struct Request {
  const MegatronLMDummyDataLoader& loader;
  const ModelSpec& model;
  std::int64_t samples = 0;
};

Samples gpt(std::shared_ptr<const IndexedDataset> dataset, const SplitBounds& bounds, const Request& request) {
  const GptIndexRequest wanted{
      .sequence_length = request.model.context, .samples = request.samples, .seed = request.loader.seed};
  auto index = taken(build_gpt_index(*dataset, elements_of(bounds, dataset->sequences()), wanted));
  auto set = std::make_shared<const GptDataset>(std::move(dataset), std::move(index), wanted);
  return {set->size(), [set](std::int64_t sample) {
            const auto text = taken(set->text(sample));
            at::Tensor row = at::empty({1, std::ssize(text)}, at::kLong);
            std::ranges::copy(text, row.mutable_data_ptr<std::int64_t>());
            return Batch{{"text", row}};
          }};
}

SpecialTokens special_of(const std::string& prefix) {
  auto sidecar = taken(read_sidecar(prefix));
  if (!sidecar)
    throw std::invalid_argument(sidecar_path(prefix).string() +
                                ": nothing says which tokens are special; build the data set with its sentences");
  return std::move(sidecar->special);
}

template <typename Set, typename Wanted, typename ToBatch>
Samples sentences(const std::string& prefix, std::shared_ptr<const IndexedDataset> dataset, const SplitBounds& bounds,
                  const Wanted& wanted, ModelKind kind, ToBatch to_batch) {
  auto index = taken(
      build_sentence_index(*dataset, elements_of(bounds, dataset->documents()), taken(Set::index_request(wanted))));
  auto set =
      std::make_shared<const Set>(taken(Set::create(std::move(dataset), std::move(index), wanted, special_of(prefix))));
  return {set->size(), [set, kind, to_batch](std::int64_t sample) {
            const auto item = taken(set->item(sample));
            return named_batch(to_batch(std::span(&item, 1)), kind);
          }};
}

Samples samples_of(const std::string& prefix, const SplitBounds& bounds, const Request& request) {
  auto dataset = std::make_shared<const IndexedDataset>(taken(IndexedDataset::open(prefix)));
  const ModelSpec& model = request.model;
  if (model.kind == ModelKind::gpt) return gpt(std::move(dataset), bounds, request);
  if (model.kind == ModelKind::bert)
    return sentences<BertDataset>(prefix, std::move(dataset), bounds,
                                  BertRequest{.sequence_length = model.context,
                                              .samples = request.samples,
                                              .seed = request.loader.seed,
                                              .binary_head = model.binary_head,
                                              .short_probability = request.loader.short_seq_prob,
                                              .masking = masking_of(bert_masking, request.loader)},
                                  model.kind, [](std::span<const BertItem> items) { return bert_batch(items); });
  return sentences<T5Dataset>(prefix, std::move(dataset), bounds,
                              T5Request{.sequence_length = model.context,
                                        .decoder_sequence_length = model.tokens_of_decoder(),
                                        .samples = request.samples,
                                        .seed = request.loader.seed,
                                        .short_probability = request.loader.short_seq_prob,
                                        .masking = masking_of(t5_masking, request.loader)},
                              model.kind, [](std::span<const T5Item> items) { return t5_batch(items); });
}

Batch rows_of(const std::vector<Batch>& rows) {
  Batch all;
  for (const auto& each : rows.front()) {
    std::vector<at::Tensor> parts;
    for (const Batch& row : rows) parts.push_back(row.at(each.first));
    all[each.first] = at::cat(parts);
  }
  return all;
}

}  // namespace

std::vector<MegatronDataset> indexed_text(const MegatronLMDummyDataLoader& loader, const ModelSpec& model,
                                          const std::vector<std::int64_t>& samples) {
  const Blended blended = parse(loader.data_path);
  const SplitMatrix matrix = taken(parse_split(loader.split));
  std::vector<MegatronDataset> splits(samples.size());
  for (std::size_t split = 0; split < splits.size(); ++split) {
    if (samples[split] < 1 || !matrix.at(split)) continue;
    BlendSizes sizes{.requested = {samples[split]}, .size = samples[split]};
    if (!blended.weights.empty()) sizes = taken(blend_sizes(blended.weights, samples[split]));
    std::vector<Samples> sets;
    for (std::size_t i = 0; i < blended.prefixes.size(); ++i)
      sets.push_back(samples_of(blended.prefixes[i], *matrix[split], {loader, model, sizes.requested[i]}));
    auto index = std::make_shared<std::optional<BlendIndex>>();
    if (!blended.weights.empty()) *index = taken(build_blend_index(sizes.weights, sizes.size));
    splits[split].samples = blended.weights.empty() ? sets.front().count : sizes.size;
    splits[split].fetch = [sets, index](const std::vector<std::int64_t>& rows) {
      std::vector<Batch> fetched;
      for (const std::int64_t row : rows) {
        std::size_t set = 0;
        std::int64_t sample = row;
        if (*index) {
          set = static_cast<std::size_t>((*index)->dataset_index.at(row));
          sample = (*index)->dataset_sample_index.at(row);
        }
        fetched.push_back(sets[set].row(sample));
      }
      return rows_of(fetched);
    };
  }
  return splits;
}

}  // namespace accrue::megatron
