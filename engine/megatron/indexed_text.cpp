// SPDX-License-Identifier: Apache-2.0
#include "megatron/indexed_text.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <functional>
#include <span>
#include <stdexcept>
#include <type_traits>

#include "accrue/run/data/bert_dataset.h"
#include "accrue/run/data/blend.h"
#include "accrue/run/data/dataset_sidecar.h"
#include "accrue/run/data/dataset_splits.h"
#include "accrue/run/data/gpt_dataset.h"
#include "accrue/run/data/t5_dataset.h"
#include "accrue/run/facts/kept_index.h"
#include "accrue/run/megatron/megatron_blend.h"
#include "data/masked_samples.h"

namespace accrue::megatron {
namespace {

template <typename T>
T taken(Result<T> result) {
  if (!result) throw std::invalid_argument(result.error().text());
  return *std::move(result);
}

[[noreturn]] void refuse_data(const std::string& what) {
  throw std::invalid_argument("MegatronLMDummyDataLoader: " + what);
}

MegatronBlend parse(const std::vector<std::string>& words, const std::string& name) {
  auto blend = read_megatron_blend(words);
  if (!blend) refuse_data(name + " " + blend.error().message + " (\"" + blend.error().where + "\")");
  return *std::move(blend);
}

/// Data sets of a split, and the part of them that it takes.
struct SplitSource {
  MegatronBlend blended;
  std::optional<SplitBounds> bounds;  ///< empty: the split has no samples
};

/// Returns the three splits of data_path, or of the data that each split has of its own.
std::vector<SplitSource> sources_of(const MegatronLMDummyDataLoader& loader) {
  const std::pair<const char*, const std::vector<std::string>*> own[] = {{"train_data_path", &loader.train_data_path},
                                                                         {"valid_data_path", &loader.valid_data_path},
                                                                         {"test_data_path", &loader.test_data_path}};
  std::vector<SplitSource> sources(std::size(own));
  const bool apart = std::ranges::any_of(own, [](const auto& each) { return !each.second->empty(); });
  if (apart && !loader.data_path.empty())
    refuse_data(
        "data_path is divided by split, and train_data_path, valid_data_path and test_data_path are not: give one "
        "or the others");
  if (!apart && loader.data_path.empty()) refuse_data("data_path names no data set");
  if (apart) {
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (!own[i].second->empty()) sources[i] = {parse(*own[i].second, own[i].first), SplitBounds{0, 1}};
    return sources;
  }
  const SplitMatrix matrix = taken(parse_split(loader.split));
  for (std::size_t i = 0; i < sources.size(); ++i) sources[i] = {parse(loader.data_path, "data_path"), matrix.at(i)};
  return sources;
}

MaskingRule masking_of(MaskingRule rule, const MegatronLMDummyDataLoader& loader) {
  rule.probability = loader.mask_prob;
  return rule;
}

/// Samples of one prefix: each is a batch of one row.
struct Samples {
  std::int64_t count = 0;
  std::function<Batch(std::int64_t sample)> row;
};

struct Request {
  const MegatronLMDummyDataLoader& loader;
  const ModelSpec& model;
  DatasetSplit split = DatasetSplit::train;
  std::optional<std::int64_t> samples;  ///< empty: those of one pass
  TokenizerIdentity tokenizer;
};

/// Returns the key under which Megatron-LM keeps the index of a prefix.
DatasetIdentity identity_of(const std::string& prefix, const Request& request,
                            std::optional<MaskingIdentity> masking = {}) {
  DatasetIdentity identity{.dataset_path = prefix,
                           .num_samples = request.samples,
                           .index_split = request.split,
                           .random_seed = request.loader.seed,
                           .sequence_length = request.model.context,
                           .split = {},
                           .tokenizer = request.tokenizer,
                           .masking = masking,
                           .corpus = {}};
  if (!request.loader.data_path.empty()) identity.split = request.loader.split;
  return identity;
}

std::optional<MaskingIdentity> masking_identity(const Request& request) {
  const ModelSpec& model = request.model;
  if (is_decoder_only(model.kind)) return std::nullopt;
  MaskingIdentity masking{.rule = masking_of(model.kind == ModelKind::bert ? bert_masking : t5_masking, request.loader),
                          .short_probability = request.loader.short_seq_prob,
                          .decoder_sequence_length = {},
                          .binary_head = model.binary_head};
  if (model.kind == ModelKind::t5) masking.decoder_sequence_length = model.tokens_of_decoder();
  return masking;
}

/// Returns the index of a prefix; it is kept in data_cache_path if that is set.
template <typename Build>
auto index_of(const std::string& prefix, const Request& request, const Build& build) {
  const std::string& folder = request.loader.data_cache_path;
  if (folder.empty()) return taken(build());
  DatasetIdentity identity = identity_of(prefix, request, masking_identity(request));
  identity.corpus = taken(mark_of_corpus(prefix));
  if constexpr (std::is_same_v<decltype(build()), Result<GptIndex>>)
    return taken(kept_index(folder, identity, build));
  else
    return taken(kept_sentence_index(folder, identity, build));
}

Samples gpt(const std::string& prefix, std::shared_ptr<const IndexedDataset> dataset, const SplitBounds& bounds,
            const Request& request) {
  if (dataset->has_prompts())
    throw std::invalid_argument(
        prefix + ": batches of text alone would have its prompts in the loss; build it without --prompt-key");
  const GptIndexRequest wanted{
      .sequence_length = request.model.context, .samples = request.samples, .seed = request.loader.seed};
  const auto build = [&] { return build_gpt_index(*dataset, elements_of(bounds, dataset->sequences()), wanted); };
  auto index = index_of(prefix, request, build);
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
                  const Wanted& wanted, const Request& request, ToBatch to_batch) {
  const ModelKind kind = request.model.kind;
  const auto rule = taken(Set::index_request(wanted));
  const auto build = [&] { return build_sentence_index(*dataset, elements_of(bounds, dataset->documents()), rule); };
  auto index = index_of(prefix, request, build);
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
  if (is_decoder_only(model.kind)) return gpt(prefix, std::move(dataset), bounds, request);
  if (model.kind == ModelKind::bert)
    return sentences<BertDataset>(prefix, std::move(dataset), bounds,
                                  BertRequest{.sequence_length = model.context,
                                              .samples = request.samples,
                                              .seed = request.loader.seed,
                                              .binary_head = model.binary_head,
                                              .short_probability = request.loader.short_seq_prob,
                                              .masking = masking_of(bert_masking, request.loader)},
                                  request, [](std::span<const BertItem> items) { return bert_batch(items); });
  return sentences<T5Dataset>(prefix, std::move(dataset), bounds,
                              T5Request{.sequence_length = model.context,
                                        .decoder_sequence_length = model.tokens_of_decoder(),
                                        .samples = request.samples,
                                        .seed = request.loader.seed,
                                        .short_probability = request.loader.short_seq_prob,
                                        .masking = masking_of(t5_masking, request.loader)},
                              request, [](std::span<const T5Item> items) { return t5_batch(items); });
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

/// Without weights each set is weighted by the number of samples in one pass over it, w_i = n_i / sum n, and the blend
/// has at most sum n samples.
void size_by_lengths(BlendSizes& sizes, const std::vector<Samples>& sets) {
  std::vector<double> lengths;
  std::int64_t all = 0;
  for (const Samples& set : sets) {
    lengths.push_back(static_cast<double>(set.count));
    all += set.count;
  }
  sizes.weights = taken(normalize_weights(lengths));
  sizes.size = std::min(sizes.size, all);
}

BlendIndex blend_of(const MegatronLMDummyDataLoader& loader, const MegatronBlend& blended, const BlendSizes& sizes,
                    const std::vector<std::optional<std::int64_t>>& requested, Request request) {
  const auto build = [&] { return build_blend_index(sizes.weights, sizes.size); };
  if (loader.data_cache_path.empty()) return taken(build());
  BlendIdentity identity{.datasets = {}, .split = request.split, .weights = sizes.weights, .size = sizes.size};
  for (std::size_t i = 0; i < blended.paths.size(); ++i) {
    request.samples = requested[i];
    identity.datasets.push_back(identity_of(blended.paths[i], request, masking_identity(request)));
  }
  return taken(kept_index(loader.data_cache_path, identity, build));
}

}  // namespace

void check_names(const MegatronLMDummyDataLoader& loader) {
  if (loader.dataloader_type == "external")
    refuse_data("dataloader_type \"external\" means data of your own: pass map_loader() in the place of this object");
  if (loader.dataloader_type != "single" && loader.dataloader_type != "cyclic")
    refuse_data("dataloader_type \"" + loader.dataloader_type + "\" is none of single, cyclic");
  if (loader.mock_data) refuse_data("mock_data makes no data here: pass map_loader() with a function that makes them");
  if (loader.num_workers != 0)
    refuse_data("num_workers must be 0: a rank reads mapped files itself, and has no processes that read ahead");
  if (!loader.mmap_bin_files) refuse_data("mmap_bin_files must be true: indexed data sets are always mapped");
  if (!loader.vocab_file.empty() || !loader.merge_file.empty())
    refuse_data(
        "vocab_file and merge_file have no use here: the .json file beside an indexed data set says what made its "
        "tokens");
}

std::vector<MegatronDataset> indexed_text(const MegatronLMDummyDataLoader& loader, const ModelSpec& model,
                                          const std::vector<std::int64_t>& samples) {
  const std::vector<SplitSource> sources = sources_of(loader);
  std::vector<MegatronDataset> splits(samples.size());
  for (std::size_t split = 0; split < splits.size(); ++split) {
    const auto& [blended, bounds] = sources.at(split);
    if (samples[split] < 1 || !bounds) continue;
    const bool blends = blended.paths.size() > 1 || !blended.weights.empty();
    BlendSizes sizes{.size = samples[split]};
    if (!blended.weights.empty()) sizes = taken(blend_sizes(blended.weights, samples[split]));
    std::vector<std::optional<std::int64_t>> requested(sizes.requested.begin(), sizes.requested.end());
    if (requested.empty()) requested.assign(blended.paths.size(), blends ? std::nullopt : std::optional(sizes.size));
    Request request{.loader = loader, .model = model, .split = static_cast<DatasetSplit>(split), .tokenizer = {}};
    request.tokenizer = tokenizer_of(taken(read_sidecar(blended.paths.front())), model);
    std::vector<Samples> sets;
    for (std::size_t i = 0; i < blended.paths.size(); ++i) {
      request.samples = requested[i];
      sets.push_back(samples_of(blended.paths[i], *bounds, request));
    }
    if (blends && blended.weights.empty()) size_by_lengths(sizes, sets);
    auto index = std::make_shared<std::optional<BlendIndex>>();
    if (blends) *index = blend_of(loader, blended, sizes, requested, request);
    splits[split].samples = blends ? sizes.size : sets.front().count;
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
