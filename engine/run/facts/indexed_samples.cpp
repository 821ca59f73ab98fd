// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/facts/indexed_samples.h"

#include <fmt/format.h>

#include "indexed_requests.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

class Opening {
 public:
  Opening(const RunSpec& spec, const IndexedCorpus& corpus, const CorpusSplit& split, const fs::path& base_dir,
          IndexCaching caching)
      : spec_(spec), corpus_(corpus), split_(split), caching_(caching) {
    if (!spec.data.cache.empty()) {
      const fs::path folder(spec.data.cache);
      folder_ = folder.is_absolute() ? folder : base_dir / folder;
    }
  }

  Result<GptDataset> gpt(const CorpusSet& set) const {
    auto dataset = open(set);
    if (!dataset) return tl::unexpected(dataset.error());
    const GptIndexRequest request = gpt_request(spec_, set);
    const auto identity = identity_of_now(set);
    if (!identity) return tl::unexpected(identity.error());
    const fs::path folder = folder_of(set, *identity);
    auto index = kept_index(
        folder, *identity, [&] { return build_gpt_index(**dataset, set.elements, request); }, caching_);
    if (!index) return tl::unexpected(index.error());
    if (index->shuffle_index.size() != set.samples)
      return fail(
          ErrorCode::protocol,
          fmt::format("the index has {} samples, and the tokens make {}", index->shuffle_index.size(), set.samples),
          set.prefix.string(), "Check the dataset with accrue-run data show, and remove the index in its cache");
    return GptDataset(*std::move(dataset), *std::move(index), request);
  }

  Result<BertDataset> bert(const CorpusSet& set) const {
    auto parts = sentences(set);
    if (!parts) return tl::unexpected(parts.error());
    return BertDataset::create(std::move(parts->dataset), std::move(parts->index), bert_request(spec_, set),
                               std::move(parts->special));
  }
  Result<T5Dataset> t5(const CorpusSet& set) const {
    auto parts = sentences(set);
    if (!parts) return tl::unexpected(parts.error());
    return T5Dataset::create(std::move(parts->dataset), std::move(parts->index), t5_request(spec_, set),
                             std::move(parts->special));
  }

  /// Megatron-LM saves a blend only in an explicit folder.
  Result<BlendIndex> blend() const {
    BlendIdentity identity{.datasets = {}, .split = split_.split, .weights = {}, .size = {}};
    std::vector<std::int64_t> lengths;
    std::int64_t size = 0;
    for (const CorpusSet& set : split_.sets) {
      identity.datasets.push_back(identity_of(set));
      identity.weights.push_back(split_.weighted ? set.weight : static_cast<double>(set.samples));
      lengths.push_back(set.samples);
      size += set.taken;
    }
    if (split_.weighted) identity.size = size;
    const auto build = [&]() -> Result<BlendIndex> {
      return split_.weighted ? build_blend_index(identity.weights, size) : build_exhaustive_blend_index(lengths);
    };
    if (folder_.empty()) return build();
    return kept_index(folder_, identity, build, caching_);
  }

 private:
  struct Sentences {
    std::shared_ptr<const IndexedDataset> dataset;
    IndexArray index;
    SpecialTokens special;
  };

  static Result<std::shared_ptr<const IndexedDataset>> open(const CorpusSet& set) {
    auto dataset = IndexedDataset::open(set.prefix);
    if (!dataset) return tl::unexpected(dataset.error());
    return std::make_shared<const IndexedDataset>(*std::move(dataset));
  }

  Result<Sentences> sentences(const CorpusSet& set) const {
    auto dataset = open(set);
    if (!dataset) return tl::unexpected(dataset.error());
    auto sidecar = read_sidecar(set.prefix);
    if (!sidecar) return tl::unexpected(sidecar.error());
    if (!*sidecar)
      return fail(ErrorCode::data, "nothing says which tokens are special", sidecar_path(set.prefix).string(),
                  "Build the dataset with accrue-run data build --sentences");
    const auto request = sentence_request(spec_, set);
    if (!request) return tl::unexpected(request.error());
    const auto identity = identity_of_now(set);
    if (!identity) return tl::unexpected(identity.error());
    const fs::path folder = folder_of(set, *identity);
    auto index = kept_sentence_index(
        folder, *identity, [&] { return build_sentence_index(**dataset, set.elements, *request); }, caching_);
    if (!index) return tl::unexpected(index.error());
    return Sentences{*std::move(dataset), *std::move(index), std::move((*sidecar)->special)};
  }

  fs::path folder_of(const CorpusSet& set, const DatasetIdentity& identity) const {
    return folder_.empty() ? default_index_folder(set.prefix, class_name(identity)) : folder_;
  }

  /// Identity with the current corpus.
  Result<DatasetIdentity> identity_of_now(const CorpusSet& set) const {
    DatasetIdentity identity = identity_of(set);
    auto mark = mark_of_corpus(set.prefix);
    if (!mark) return tl::unexpected(mark.error());
    identity.corpus = *std::move(mark);
    return identity;
  }

  DatasetIdentity identity_of(const CorpusSet& set) const {
    DatasetIdentity identity{.dataset_path = set.name,
                             .num_samples = set.requested,
                             .index_split = split_.split,
                             .random_seed = static_cast<std::uint32_t>(index_seed(spec_)),
                             .sequence_length = spec_.model.context,
                             .split = {},
                             .tokenizer = tokenizer_of(corpus_.sidecar, spec_.model),
                             .masking = {},
                             .corpus = {}};
    if (spec_.data.validation_paths.empty()) identity.split = spec_.data.split;
    if (spec_.model.kind == ModelKind::bert)
      identity.masking = MaskingIdentity{.rule = bert_request(spec_, set).masking,
                                         .short_probability = spec_.data.short_sequence_probability,
                                         .decoder_sequence_length = {},
                                         .binary_head = spec_.model.binary_head};
    if (spec_.model.kind == ModelKind::t5)
      identity.masking = MaskingIdentity{.rule = t5_request(spec_, set).masking,
                                         .short_probability = spec_.data.short_sequence_probability,
                                         .decoder_sequence_length = t5_request(spec_, set).decoder_sequence_length};
    return identity;
  }

  const RunSpec& spec_;
  const IndexedCorpus& corpus_;
  const CorpusSplit& split_;
  IndexCaching caching_;
  fs::path folder_;  ///< data.cache; empty: beside each dataset
};

}  // namespace

Result<IndexedSamples> IndexedSamples::open(const RunSpec& spec, const IndexedCorpus& corpus, DatasetSplit split,
                                            const fs::path& base_dir, IndexCaching caching) {
  const CorpusSplit& part = split == DatasetSplit::train ? corpus.training : corpus.validation;
  IndexedSamples samples;
  samples.samples_ = part.samples;
  samples.consumed_ = skipped_samples_of(spec.data, split);
  samples.vocabulary_ = spec.model.vocabulary;
  if (part.samples == 0) return samples;
  const Opening opening(spec, corpus, part, base_dir, caching);
  for (const CorpusSet& set : part.sets) {
    const auto add = [&](auto opened) -> Result<void> {
      if (!opened) return tl::unexpected(opened.error());
      samples.sets_.emplace_back(*std::move(opened));
      return {};
    };
    const auto added = spec.model.kind == ModelKind::bert ? add(opening.bert(set))
                       : spec.model.kind == ModelKind::t5 ? add(opening.t5(set))
                                                          : add(opening.gpt(set));
    if (!added) return tl::unexpected(added.error());
  }
  if (part.sets.size() > 1) {
    auto blend = opening.blend();
    if (!blend) return tl::unexpected(blend.error());
    if (blend->dataset_index.size() != part.samples + samples.consumed_)
      return fail(ErrorCode::protocol, "the index of the blend belongs to other datasets", spec.data.cache,
                  "Remove it; it is then built again");
    samples.blend_ = *std::move(blend);
  }
  return samples;
}

Result<IndexedSamples::Place> IndexedSamples::place(std::int64_t sample) const {
  if (sample < 0 || sample >= samples_)
    return fail(ErrorCode::data, fmt::format("there is no sample {}: there are {}", sample, samples_));
  const std::int64_t at = sample + consumed_;
  if (sets_.size() == 1) return Place{0, at};
  const std::int64_t set = blend_.dataset_index.at(at);
  if (set < 0 || set >= std::ssize(sets_))
    return fail(ErrorCode::protocol, fmt::format("the index of the blend names dataset {} of {}", set, sets_.size()),
                {}, "Remove it; it is then built again");
  return Place{static_cast<std::size_t>(set), blend_.dataset_sample_index.at(at)};
}

Result<SampleOrigin> IndexedSamples::origin(std::int64_t sample) const {
  const auto at = place(sample);
  if (!at) return tl::unexpected(at.error());
  SampleOrigin origin{.set = at->set, .item = at->item, .pieces = {}};
  if (const auto* gpt = std::get_if<GptDataset>(&sets_[at->set])) {
    auto pieces = gpt->pieces(at->item);
    if (!pieces) return tl::unexpected(pieces.error());
    origin.pieces = *std::move(pieces);
    return origin;
  }
  const auto sentences = [&](const auto& dataset) -> Result<void> {
    if (at->item >= dataset.size())
      return fail(ErrorCode::data, fmt::format("there is no sample {}: there are {}", at->item, dataset.size()));
    for (std::int64_t each = dataset.index().at(at->item, 0); each < dataset.index().at(at->item, 1); ++each) {
      const auto length = dataset.dataset().length(each);
      if (!length) return tl::unexpected(length.error());
      origin.pieces.push_back({each, 0, *length});
    }
    return {};
  };
  const auto* bert = std::get_if<BertDataset>(&sets_[at->set]);
  const auto read = bert != nullptr ? sentences(*bert) : sentences(std::get<T5Dataset>(sets_[at->set]));
  if (!read) return tl::unexpected(read.error());
  return origin;
}

Result<GptItem> IndexedSamples::gpt(std::int64_t sample) const {
  const auto at = place(sample);
  if (!at) return tl::unexpected(at.error());
  const auto& dataset = std::get<GptDataset>(sets_[at->set]);
  auto item = dataset.item(at->item);
  if (!item) return item;
  for (const auto* row : {&item->tokens, &item->labels})
    for (const std::int64_t token : *row)
      if (token < 0 || token >= vocabulary_)
        return fail(
            ErrorCode::data,
            fmt::format("sample {} holds the token {}, outside the vocabulary of {}", sample, token, vocabulary_),
            dataset.dataset().prefix().string(),
            token < 0 ? "Build the dataset again: a token is a number from 0" : "Raise model.vocabulary");
  return item;
}

Result<BertItem> IndexedSamples::bert(std::int64_t sample) const {
  const auto at = place(sample);
  if (!at) return tl::unexpected(at.error());
  return std::get<BertDataset>(sets_[at->set]).item(at->item);
}

Result<T5Item> IndexedSamples::t5(std::int64_t sample) const {
  const auto at = place(sample);
  if (!at) return tl::unexpected(at.error());
  return std::get<T5Dataset>(sets_[at->set]).item(at->item);
}

}  // namespace accrue
