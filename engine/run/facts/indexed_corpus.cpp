// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/facts/indexed_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "accrue/run/base/counted.h"
#include "accrue/run/data/blend.h"
#include "indexed_requests.h"
#include "window_length.h"

namespace accrue {
namespace {

constexpr double most_samples = 0x1p40;

std::int64_t saturated(double samples) {
  return static_cast<std::int64_t>(std::min(samples, most_samples));
}

std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
  return a <= 0 ? 0 : (a - 1) / b + 1;
}

class Planner {
 public:
  Planner(const RunSpec& spec, const std::filesystem::path& base_dir) : spec_(spec), base_dir_(base_dir) {}

  Result<IndexedCorpus> plan() {
    const DataSpec& data = spec_.data;
    if (data.paths.empty())
      return fail(ErrorCode::data, "no dataset is named", "data.paths",
                  "Name datasets, each by the path of its .bin and .idx files without their endings.");
    if (auto checked = check_weights(data.weights, data.paths, "data.weights", "data.paths"); !checked)
      return tl::unexpected(checked.error());
    if (auto checked = check_weights(data.validation_weights, data.validation_paths, "data.validation_weights",
                                     "data.validation_paths");
        !checked)
      return tl::unexpected(checked.error());
    for (const std::string& name : names())
      if (auto checked = check_prompts(name); !checked) return tl::unexpected(checked.error());
    const bool own_validation = !data.validation_paths.empty();
    SplitMatrix matrix;
    if (own_validation) {
      matrix[0] = matrix[1] = SplitBounds{0, 1};
    } else {
      const auto parsed = parse_split(data.split);
      if (!parsed) return fail(ErrorCode::data, parsed.error().message, "data.split", parsed.error().hint + ".");
      matrix = *parsed;
    }
    auto training = split(DatasetSplit::train, data.paths, data.weights, matrix[0]);
    if (!training) return tl::unexpected(training.error());
    auto validation = split(DatasetSplit::valid, own_validation ? data.validation_paths : data.paths,
                            own_validation ? data.validation_weights : data.weights, matrix[1]);
    if (!validation) return tl::unexpected(validation.error());
    IndexedCorpus corpus{.training = *std::move(training), .validation = *std::move(validation)};
    auto sidecar = read_sidecar(path_of(data.paths.front()));
    if (!sidecar) return tl::unexpected(sidecar.error());
    corpus.sidecar = *std::move(sidecar);
    if (auto checked = check_vocabulary(); !checked) return tl::unexpected(checked.error());
    for (const CorpusSplit* each : {&corpus.training, &corpus.validation})
      if (auto checked = check_documents(*each); !checked) return tl::unexpected(checked.error());
    return corpus;
  }

 private:
  bool gpt() const { return is_decoder_only(spec_.model.kind); }
  const char* element() const { return gpt() ? "sequence" : "document"; }
  std::filesystem::path path_of(const std::string& name) const {
    const std::filesystem::path path(name);
    return path.is_absolute() ? path : base_dir_ / path;
  }

  static Result<void> check_weights(const std::vector<double>& weights, const std::vector<std::string>& paths,
                                    const char* key, const char* paths_key) {
    if (weights.empty()) return {};
    if (weights.size() != paths.size())
      return fail(ErrorCode::data,
                  fmt::format("there are {} for {} of {}", counted(std::ssize(weights), "weight"),
                              counted(std::ssize(paths), "dataset"), paths_key),
                  key, "Give one weight to each dataset, or none at all.");
    if (const auto normal = normalize_weights(weights); !normal)
      return fail(ErrorCode::data, normal.error().message, key, normal.error().hint + ".");
    return {};
  }

  Result<CorpusSplit> split(DatasetSplit which, const std::vector<std::string>& names,
                            const std::vector<double>& weights, const std::optional<SplitBounds>& bounds) {
    CorpusSplit split{.split = which};
    std::vector<double> kept_weights;
    for (std::size_t i = 0; i < names.size(); ++i) {
      auto set = part_of(names[i], bounds);
      if (!set) return tl::unexpected(set.error());
      if (set->elements.size() == 0 || set->tokens == 0) {
        // Evaluation may use fewer datasets than given; training uses all.
        if (which != DatasetSplit::train) continue;
        return fail(ErrorCode::data,
                    fmt::format("the split leaves nothing of {} to train on: it has {}", set->prefix.string(),
                                counted(elements_, element())),
                    "data.split", "Give training a larger part, or leave the dataset out.");
      }
      split.sets.push_back(*std::move(set));
      if (!weights.empty()) kept_weights.push_back(weights[i]);
    }
    if (split.sets.empty()) return split;
    split.weighted = split.sets.size() > 1 && !weights.empty();
    if (auto sized = split.weighted ? size_blend(split, kept_weights) : size_sets(split); !sized)
      return tl::unexpected(sized.error());
    if (which == DatasetSplit::train && split.samples < 1)
      return fail(ErrorCode::data,
                  fmt::format("the training part of {} has {}, too few for one sample of {}",
                              split.sets.front().prefix.string(), counted(split.sets.front().tokens, "token"),
                              spec_.model.context + 1),
                  "data.split", "Lower model.context, or give training a larger part.");
    if (const std::int64_t consumed = skipped_samples_of(spec_.data, which); consumed > 0) {
      if (consumed >= split.samples)
        return fail(ErrorCode::data,
                    fmt::format("{} are consumed already, and the {} split has {}", counted(consumed, "sample"),
                                to_string(which), split.samples),
                    "data.consumed_samples", "Lower data.consumed_samples, or ask for a longer run.");
      split.samples -= consumed;
    }
    return split;
  }

  Result<CorpusSet> part_of(const std::string& name, const std::optional<SplitBounds>& bounds) {
    CorpusSet set{.name = name, .prefix = path_of(name)};
    const auto dataset = IndexedDataset::open(set.prefix);
    if (!dataset) {
      Error error = dataset.error();
      if (name.ends_with(".bin") || name.ends_with(".idx"))
        error.hint = "Give the dataset without .bin or .idx: " + name.substr(0, name.size() - 4) + ".";
      return tl::unexpected(std::move(error));
    }
    elements_ = gpt() ? dataset->sequences() : dataset->documents();
    if (bounds) set.elements = elements_of(*bounds, elements_);
    if (set.elements.size() <= 0) {
      set.elements = {};
      return set;
    }
    IndexRange sequences = set.elements;
    if (!gpt()) {
      const auto first = dataset->document(set.elements.begin), last = dataset->document(set.elements.end - 1);
      if (!first) return tl::unexpected(first.error());
      if (!last) return tl::unexpected(last.error());
      sequences = {first->begin, last->end};
    }
    const auto tokens = dataset->tokens(sequences);
    if (!tokens) return tl::unexpected(tokens.error());
    set.tokens = *tokens;
    return set;
  }

  /// Requested samples of a split; none: one pass.
  std::optional<std::int64_t> wanted(DatasetSplit which) const {
    const std::int64_t consumed = consumed_samples_of(spec_.data, which);
    if (which == DatasetSplit::train) {
      const auto samples = samples_of_run(spec_);
      return samples ? std::optional(std::min(*samples + consumed, static_cast<std::int64_t>(most_samples)))
                     : std::nullopt;
    }
    const EvaluateSpec& evaluate = spec_.evaluate;
    return saturated(std::max(1.0, static_cast<double>(evaluate.batches) *
                                       static_cast<double>(spec_.accumulation.micro_batch) *
                                       static_cast<double>(spec_.parallel.data))) +
           consumed;
  }

  /// Samples of one pass over the set.
  Result<std::int64_t> samples_of_pass(const CorpusSet& set) const {
    if (gpt()) return std::max<std::int64_t>(0, (set.tokens - 1) / spec_.model.context);
    const auto dataset = IndexedDataset::open(set.prefix);
    if (!dataset) return tl::unexpected(dataset.error());
    auto request = sentence_request(spec_, set);
    if (!request) return tl::unexpected(request.error());
    request->samples.reset();
    const auto index = build_sentence_index(*dataset, set.elements, *request);
    if (!index) return tl::unexpected(index.error());
    return index->size();
  }

  Result<void> size_set(CorpusSet& set, std::optional<std::int64_t> requested) const {
    set.requested = requested;
    if (gpt()) {
      const auto shape = gpt_index_shape(set.tokens, gpt_request(spec_, set));
      if (!shape) return tl::unexpected(shape.error());
      set.samples = shape->samples;
      set.passes = shape->epochs;
      return {};
    }
    if (const auto request = sentence_request(spec_, set); !request) return tl::unexpected(request.error());
    if (!requested) {
      const auto pass = samples_of_pass(set);
      if (!pass) return tl::unexpected(pass.error());
      set.requested = *pass * passes_of_index(spec_);
    }
    set.samples = *set.requested;
    return {};
  }

  /// Sizes one set, or several sets whose samples all occur once.
  Result<void> size_sets(CorpusSplit& split) const {
    const bool several = split.sets.size() > 1;
    std::optional<std::int64_t> asked;
    if (!several) {
      asked = wanted(split.split);
      // An evaluation reads the first samples of one pass.
      if (split.split != DatasetSplit::train && gpt()) asked.reset();
      if (split.split == DatasetSplit::train && !asked && gpt() && passes_of_index(spec_) > 1)
        asked = std::max<std::int64_t>(1, (passes_of_index(spec_) * split.sets[0].tokens - 1) / spec_.model.context);
    }
    for (CorpusSet& set : split.sets) {
      if (auto sized = size_set(set, asked); !sized) return sized;
      if (several && set.samples < 1)
        return fail(ErrorCode::data,
                    fmt::format("the {} part of {} has {}, too few for one sample of {}", to_string(split.split),
                                set.prefix.string(), counted(set.tokens, "token"), spec_.model.context + 1),
                    "data.split", "Leave the dataset out, or lower model.context.");
      set.taken = set.samples;
      split.samples += set.samples;
    }
    for (CorpusSet& set : split.sets)
      set.weight = static_cast<double>(set.samples) / static_cast<double>(std::max<std::int64_t>(1, split.samples));
    return {};
  }

  Result<void> size_blend(CorpusSplit& split, const std::vector<double>& weights) const {
    auto asked = wanted(split.split);
    if (!asked) {
      double pass = 0;
      for (const CorpusSet& set : split.sets) {
        const auto samples = samples_of_pass(set);
        if (!samples) return tl::unexpected(samples.error());
        pass += static_cast<double>(*samples);
      }
      asked = saturated(std::max(1.0, pass * static_cast<double>(passes_of_index(spec_))));
    }
    const auto sizes = blend_sizes(weights, *asked);
    if (!sizes) return tl::unexpected(sizes.error());
    for (std::size_t i = 0; i < split.sets.size(); ++i) {
      CorpusSet& set = split.sets[i];
      set.weight = sizes->weights[i];
      if (auto sized = size_set(set, sizes->requested[i]); !sized) return sized;
      set.taken = sizes->taken[i];
    }
    split.samples = sizes->size;
    return {};
  }

  /// Checks that the documents of every set give samples for a BERT or a T5.
  Result<void> check_documents(const CorpusSplit& split) const {
    if (gpt()) return {};
    for (const CorpusSet& set : split.sets) {
      const auto dataset = IndexedDataset::open(set.prefix);
      if (!dataset) return tl::unexpected(dataset.error());
      const auto request = sentence_request(spec_, set);
      if (!request) return tl::unexpected(request.error());
      if (auto checked = check_gives_samples(*dataset, set.elements, *request); !checked) return checked;
    }
    return {};
  }

  /// A BERT and a T5 read sentences, and need special tokens beside those of the text.
  Result<void> check_sentences(const std::string& name, const std::optional<DatasetSidecar>& sidecar) const {
    if (gpt()) return {};
    const bool t5 = spec_.model.kind == ModelKind::t5;
    const char* const model = t5 ? "T5" : "BERT";
    const auto refuse = [&](const std::string& problem) -> Result<void> {
      return fail(ErrorCode::data, path_of(name).string() + " " + problem, "data.paths",
                  "Build the dataset with \"accrue-run data build TEXT --out PREFIX --sentences\".");
    };
    if (!sidecar) return refuse(fmt::format("has no .json file, which says the special tokens of a {}", model));
    const SpecialTokens& special = sidecar->special;
    const bool complete = special.mask >= 0 && (t5 ? special.bos >= 0 && special.eos >= 0 && !special.sentinels.empty()
                                                   : special.cls >= 0 && special.sep >= 0);
    if (!complete) return refuse(fmt::format("lacks special tokens that a {} needs", model));
    if (!t5 && spec_.model.binary_head && !sidecar->sentences)
      return refuse("was built without --sentences, and a BERT with a binary head reads pairs of sentences");
    return {};
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names = spec_.data.paths;
    names.insert(names.end(), spec_.data.validation_paths.begin(), spec_.data.validation_paths.end());
    return names;
  }

  Result<void> check_prompts(const std::string& name) const {
    const auto sidecar = read_sidecar(path_of(name));
    if (!sidecar) return tl::unexpected(sidecar.error());
    std::error_code ignored;
    const auto path = prompts_path(path_of(name));
    const bool there = std::filesystem::exists(path, ignored), named = *sidecar && (*sidecar)->prompts;
    if ((there || named) && !gpt())
      return fail(ErrorCode::data,
                  path_of(name).string() + " has prompts, which only a GPT or a Llama can leave out of the loss",
                  "data.paths", "Build the dataset without --prompt-key.");
    if (named && !there)
      return fail(ErrorCode::data, path.string() + " is missing: it says which tokens are prompts", "data.paths",
                  "Copy it beside the .bin file, or build the dataset again.");
    return {};
  }

  /// A sidecar gives the largest token, so that a vocabulary that is too small is found before the start.
  Result<void> check_vocabulary() const {
    for (const std::string& name : names()) {
      const auto sidecar = read_sidecar(path_of(name));
      if (!sidecar) return tl::unexpected(sidecar.error());
      if (auto checked = check_sentences(name, *sidecar); !checked) return checked;
      if (!*sidecar) continue;
      // A BERT and a T5 also use the special tokens.
      const std::int64_t needed = gpt() ? (*sidecar)->largest_token + 1 : (*sidecar)->special.vocabulary;
      if (needed > spec_.model.vocabulary)
        return fail(ErrorCode::data,
                    fmt::format("{} holds the token {}, outside the vocabulary of {}", path_of(name).string(),
                                needed - 1, spec_.model.vocabulary),
                    "model.vocabulary", fmt::format("Set model.vocabulary to {}.", (*sidecar)->special.vocabulary));
    }
    return {};
  }

  const RunSpec& spec_;
  const std::filesystem::path& base_dir_;
  std::int64_t elements_ = 0;  ///< of the dataset read last
};

}  // namespace

std::optional<std::int64_t> samples_of_run(const RunSpec& spec) {
  const RunSection& run = spec.run;
  if (run.samples) return run.samples;
  if (run.tokens) return quotient_up(*run.tokens, std::max<std::int64_t>(1, spec.model.context));
  if (run.epochs) return std::nullopt;
  const double micro_step = static_cast<double>(spec.accumulation.micro_batch) *
                            static_cast<double>(std::max<std::int64_t>(1, spec.parallel.data));
  if (!run.updates && spec.accumulation.max_iters)
    return saturated(micro_step * static_cast<double>(*spec.accumulation.max_iters));
  std::int64_t steps = steps_of(spec.accumulation, spec.parallel.data);
  for (const LengthChange& change : spec.accumulation.knobs.length_schedule) steps = std::max(steps, change.steps);
  const std::int64_t updates = run.updates.value_or(updates_by_default);
  return saturated(std::max(1.0, static_cast<double>(updates) * static_cast<double>(steps) * micro_step));
}

std::int64_t passes_of_index(const RunSpec& spec) {
  if (!spec.run.epochs || (spec.data.paths.size() > 1 && spec.data.weights.empty())) return 1;
  return std::max<std::int64_t>(1, saturated(std::ceil(*spec.run.epochs)));
}

std::int64_t index_seed(const RunSpec& spec) {
  return spec.data.seed.value_or(spec.run.seed);
}

std::int64_t consumed_samples_of(const DataSpec& data, DatasetSplit split) {
  const auto place = static_cast<std::size_t>(split);
  return place < data.consumed_samples.size() ? data.consumed_samples[place] : 0;
}

bool is_cyclic(const DataSpec& data) {
  return data.kind == DataKind::indexed && data.sampler == SamplerKind::cyclic;
}

std::int64_t skipped_samples_of(const DataSpec& data, DatasetSplit split) {
  return split == DatasetSplit::train && is_cyclic(data) ? 0 : consumed_samples_of(data, split);
}

GptIndexRequest gpt_request(const RunSpec& spec, const CorpusSet& set) {
  return {.sequence_length = spec.model.context,
          .samples = set.requested,
          .seed = static_cast<std::uint32_t>(index_seed(spec))};
}

Result<IndexedCorpus> plan_corpus(const RunSpec& spec, const std::filesystem::path& base_dir) {
  return Planner(spec, base_dir).plan();
}

}  // namespace accrue
