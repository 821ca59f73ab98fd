// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/facts/corpus_report.h"

#include <algorithm>

#include "accrue/run/base/number_text.h"
#include "accrue/run/facts/indexed_samples.h"

namespace accrue {
namespace {

constexpr std::int64_t shown_bytes = 120;
constexpr std::int64_t shown_tokens = 12;

Result<void> add_rows(CorpusReport& report, const CorpusSplit& split, const char* part) {
  double taken = 0;
  for (const CorpusSet& set : split.sets) taken += static_cast<double>(set.taken);
  for (const CorpusSet& set : split.sets) {
    const auto dataset = IndexedDataset::open(set.prefix);
    if (!dataset) return tl::unexpected(dataset.error());
    const auto sidecar = read_sidecar(set.prefix);
    if (!sidecar) return tl::unexpected(sidecar.error());
    report.rows.push_back({.name = set.name,
                           .part = part,
                           .documents = dataset->documents(),
                           .sequences = dataset->sequences(),
                           .elements = set.elements,
                           .tokens = set.tokens,
                           .samples = set.taken,
                           .passes = set.passes,
                           .asked = set.weight,
                           .real = taken > 0 ? static_cast<double>(set.taken) / taken : 0,
                           .tokenizer = *sidecar ? (*sidecar)->tokenizer : std::string()});
  }
  return {};
}

/// Returns printable bytes as themselves and others as dots; or numbers.
Result<std::string> text_of(const IndexedDataset& dataset, const TextPiece& piece, bool bytes) {
  if (piece.length == 0) return std::string();
  const auto tokens =
      dataset.get(piece.sequence, piece.offset, std::min(piece.length, bytes ? shown_bytes : shown_tokens));
  if (!tokens) return tl::unexpected(tokens.error());
  if (!bytes) return joined(*tokens, " ");
  std::string text;
  for (const std::int64_t token : *tokens)
    text += token >= 32 && token < 127 ? static_cast<char>(token) : token == '\n' ? ' ' : '.';
  return text;
}

}  // namespace

Result<CorpusReport> report_corpus(const RunSpec& spec, const std::filesystem::path& base_dir) {
  const auto corpus = plan_corpus(spec, base_dir);
  if (!corpus) return tl::unexpected(corpus.error());
  CorpusReport report{
      .rows = {}, .training_samples = corpus->training.samples, .validation_samples = corpus->validation.samples};
  if (auto added = add_rows(report, corpus->training, "training"); !added) return tl::unexpected(added.error());
  if (auto added = add_rows(report, corpus->validation, "evaluation"); !added) return tl::unexpected(added.error());
  return report;
}

Result<SampleReport> report_sample(const RunSpec& spec, const std::filesystem::path& base_dir, std::int64_t sample) {
  const auto corpus = plan_corpus(spec, base_dir);
  if (!corpus) return tl::unexpected(corpus.error());
  const auto samples = IndexedSamples::open(spec, *corpus, DatasetSplit::train, base_dir, IndexCaching::read_only);
  if (!samples) return tl::unexpected(samples.error());
  const auto origin = samples->origin(sample);
  if (!origin) return tl::unexpected(origin.error());
  const CorpusSet& set = corpus->training.sets[origin->set];
  const auto dataset = IndexedDataset::open(set.prefix);
  if (!dataset) return tl::unexpected(dataset.error());
  const auto sidecar = read_sidecar(set.prefix);
  const bool bytes = sidecar && *sidecar && (*sidecar)->tokenizer == "bytes";
  SampleReport report{.sample = sample, .dataset = set.name, .item = origin->item, .prompts = false, .parts = {}};
  for (const TextPiece& piece : origin->pieces) {
    const auto document = dataset->document_of(piece.sequence);
    if (!document) return tl::unexpected(document.error());
    const auto length = dataset->length(piece.sequence);
    if (!length) return tl::unexpected(length.error());
    const auto prompt = dataset->prompt_length(piece.sequence);
    if (!prompt) return tl::unexpected(prompt.error());
    const std::int64_t asked = std::clamp<std::int64_t>(*prompt - piece.offset, 0, piece.length);
    auto before = text_of(*dataset, {piece.sequence, piece.offset, asked}, bytes);
    if (!before) return tl::unexpected(before.error());
    auto text = text_of(*dataset, {piece.sequence, piece.offset + asked, piece.length - asked}, bytes);
    if (!text) return tl::unexpected(text.error());
    report.parts.push_back({.document = *document,
                            .sequence = piece.sequence,
                            .begin = piece.offset,
                            .end = piece.offset + piece.length,
                            .length = *length,
                            .prompt = *std::move(before),
                            .text = *std::move(text)});
    report.prompts |= asked > 0;
  }
  return report;
}

}  // namespace accrue
