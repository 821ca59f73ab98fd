// SPDX-License-Identifier: Apache-2.0
// Checks of the data against the model and the ranks.
#include <algorithm>
#include <cmath>
#include <optional>

#include "accrue/run/base/counted.h"
#include "accrue/run/data/data_split.h"
#include "accrue/run/data/text_dataset.h"
#include "accrue/run/facts/indexed_corpus.h"
#include "accrue/run/fields/model_loss.h"
#include "plan_derivation.h"
#include "preflight_checks.h"
#include "spec_text.h"

namespace accrue::preflight_detail {

namespace {

bool is_ragged(const RunSpec& spec) {
  return spec.data.kind == DataKind::inline_ && !spec.data.sequences.empty();
}

void check_inline(const RunSpec& spec, Findings& findings) {
  const DataSpec& data = spec.data;
  const bool table = !data.x.empty() || !data.y.empty();
  const bool ragged = !data.sequences.empty() || !data.labels.empty();
  if (data.kind == DataKind::inline_ && table && ragged)
    findings.error("data.sequences", "cannot be combined with x and y", {}, "either x and y, or sequences and labels",
                   "[]");
  if (data.kind != DataKind::inline_ && (table || ragged))
    findings.warn(table ? "data.x" : "data.sequences", "is not used, since data.kind is not \"inline\"",
                  quoted(data.kind), "data.kind = \"inline\"");
}

std::string classes_of(const RunSpec& spec) {
  return "0 to " + std::to_string(spec.model.outputs - 1) + ", or -100";
}

void check_sequences(const RunSpec& spec, const DataFacts& data, Findings& findings) {
  if (spec.model.kind != ModelKind::linear)
    findings.error("model.kind", "sequences are for a linear model", quoted(spec.model.kind), "\"linear\"", "linear");
  if (loss_of(spec.model) != LossKind::cross_entropy)
    findings.error("model.loss", "the labels of sequences are classes, which need cross-entropy", "\"mse\"",
                   "\"cross_entropy\"", "cross_entropy");
  if (spec.model.inputs != 1)
    findings.error("model.inputs", "each number of a sequence is one position", spec.model.inputs, "1", "1");
  for (const auto& row : spec.data.labels)
    for (const std::int64_t label : row) {
      if (label == ignored_label || (label >= 0 && label < spec.model.outputs)) continue;
      const bool too_high = label > 0;
      return findings.error(too_high ? "model.outputs" : "data.labels", "a label is not a class of the model", label,
                            classes_of(spec), too_high ? Text(data.outputs) : Text());
    }
}

// Checks targets of a loss of classes, one per row.
void check_classes(const RunSpec& spec, Findings& findings) {
  double highest = 0.0;
  std::optional<double> wrong;
  for (const auto& row : spec.data.y) {
    const double label = row.empty() ? 0.0 : row.front();
    if (label == static_cast<double>(ignored_label)) continue;
    highest = std::max(highest, label);
    const bool fits = std::floor(label) == label && label >= 0.0 && label < static_cast<double>(spec.model.outputs);
    if (!fits && !wrong) wrong = label;
  }
  if (!wrong) return;
  const bool more_classes = std::floor(*wrong) == *wrong && *wrong > 0.0 && highest < 1e6;
  findings.error(more_classes ? "model.outputs" : "data.y", "a label is not a class of the model",
                 spec_detail::number_text(*wrong), classes_of(spec),
                 more_classes ? Text(static_cast<std::int64_t>(highest) + 1) : Text());
}

/// Checks labels of a file, as counted by scan_data.
void check_counted_classes(const RunSpec& spec, const DataFacts& data, Findings& findings) {
  if (has_named_classes(data))
    findings.note("data.label_columns", "has words, which become the classes " + class_names(data));
  const std::int64_t highest = data.classes.empty() ? 0 : data.classes.back().label;
  if (highest >= spec.model.outputs)
    findings.error("model.outputs", "a label is not a class of the model", highest, classes_of(spec), highest + 1);
}

/// Finds classes whose samples are all on one side of the split, as in a table sorted by class.
void check_split_of_classes(const RunSpec& spec, const DataFacts& data, Findings& findings) {
  if (data.validation_samples < 1 || data.classes.size() < 2) return;
  const auto report = [&](std::int64_t ClassCount::*split, const std::string& what) {
    std::string missing;
    for (const ClassCount& each : data.classes)
      if (each.*split == 0) missing += (missing.empty() ? "" : " or ") + each.name;
    if (missing.empty()) return;
    const bool apart = has_validation_file(spec.data), drawn = data.validation_shuffled || apart;
    const char* const key = apart ? "data.validation_path" : "data.validation_fraction";
    const std::string message = what + missing;
    if (drawn)
      findings.warn(key, message, {}, "samples of every class");
    else
      findings.warn("data.validation_shuffle", message, "false", "true", "true");
  };
  report(&ClassCount::training, "the samples trained on have none of the class ");
  report(&ClassCount::validation, "the samples kept for evaluation have none of the class ");
}

void check_widths(const RunSpec& spec, const DataFacts& data, Findings& findings) {
  if (spec.data.kind == DataKind::synthetic || spec.data.kind == DataKind::indexed || is_transformer(spec.model.kind))
    return;
  if (is_ragged(spec)) return check_sequences(spec, data, findings);
  const auto fits = [&findings](const char* key, std::int64_t found, std::int64_t wanted, const char* columns) {
    if (found != wanted)
      findings.error(key, "does not fit the data", found, std::to_string(wanted) + ", the columns of " + columns,
                     wanted);
  };
  fits("model.inputs", spec.model.inputs, data.inputs, "x");
  const bool labels = loss_of(spec.model) == LossKind::cross_entropy;
  if (labels && data.outputs != 1)
    findings.error(spec.data.kind == DataKind::csv ? "data.label_columns" : "data.y",
                   "a cross-entropy label is one column", counted(data.outputs, "column"), "1 column");
  if (labels && spec.data.kind == DataKind::inline_) check_classes(spec, findings);
  if (labels && spec.data.kind == DataKind::csv) check_counted_classes(spec, data, findings);
  if (labels) check_split_of_classes(spec, data, findings);
  if (!labels) fits("model.outputs", spec.model.outputs, data.outputs, "y");
}

/// Checks keys of the split of data other than indexed datasets.
void check_validation_keys(const RunSpec& spec, Findings& findings) {
  const DataSpec& data = spec.data;
  if (!data.validation_path.empty() && !is_file(data.kind))
    findings.warn("data.validation_path", "is not used, since data.kind names no file", quoted(data.kind),
                  data.kind == DataKind::indexed ? "data.validation_paths" : "\"csv\", \"text\" or \"tokens\"");
  else if (has_validation_file(data) && data.validation_fraction > 0)
    findings.error("data.validation_fraction", "data.validation_path gives what is evaluated on",
                   spec_detail::number_text(data.validation_fraction), "0", "0");
  if (data.validation_shuffle && (data.validation_fraction <= 0 || data.kind == DataKind::indexed))
    findings.note("data.validation_shuffle",
                  "changes nothing here: no part of the data is kept for evaluation by "
                  "data.validation_fraction");
}

bool is_masked_model(const RunSpec& spec) {
  return spec.model.kind == ModelKind::bert || spec.model.kind == ModelKind::t5;
}

/// Finds keys of indexed data that are set but unused, by other data or another model.
void check_unread(const RunSpec& spec, Findings& findings) {
  static constexpr const char* keys[] = {"data.paths",
                                         "data.weights",
                                         "data.split",
                                         "data.validation_paths",
                                         "data.validation_weights",
                                         "data.seed",
                                         "data.cache",
                                         "data.end_of_document",
                                         "data.mask_end_of_document",
                                         "data.reset_positions",
                                         "data.reset_attention",
                                         "data.mask_probability",
                                         "data.short_sequence_probability",
                                         "data.consumed_samples",
                                         "data.sampler",
                                         "data.sharding"};
  const RunSpec usual;
  const bool indexed = spec.data.kind == DataKind::indexed;
  for (const char* const key : keys) {
    const SpecField& field = *find_field(key);
    if (field.applies(spec) || field.get(spec) == field.get(usual)) continue;
    const bool masking = field.key == "data.mask_probability" || field.key == "data.short_sequence_probability";
    if (!indexed)
      findings.warn(key, "is not used, since data.kind is not \"indexed\"", quoted(spec.data.kind),
                    "data.kind = \"indexed\"");
    else if (masking)
      findings.note(key, "changes nothing here: it is for a BERT or a T5");
    else if (field.key == "data.sharding")
      findings.note(key, "changes nothing here: data.sampler is not cyclic");
    else if (field.key == "data.split")
      findings.note(key, "changes nothing here: data.validation_paths takes its place");
  }
}

/// The decoder needs room for its first token, the masked tokens, and a sentinel for each masked span.
void check_decoder(const RunSpec& spec, Findings& findings) {
  if (spec.model.kind != ModelKind::t5) return;
  const double masked = std::ceil(spec.data.mask_probability * static_cast<double>(spec.model.context));
  const auto most = 1 + 2 * static_cast<std::int64_t>(masked);
  if (spec.model.tokens_of_decoder() < most)
    findings.warn("model.decoder_context",
                  "a run ends at a sample that gives the decoder more tokens: by model.context and "
                  "data.mask_probability one may give it " +
                      std::to_string(most),
                  spec.model.tokens_of_decoder(), "at least " + std::to_string(most), most);
}

/// Finds differences between the spec's request and the index or its samples.
void check_indexed(const RunSpec& spec, Findings& findings) {
  const DataSpec& data = spec.data;
  check_unread(spec, findings);
  if (data.kind != DataKind::indexed) return;
  check_decoder(spec, findings);
  constexpr std::int64_t most_seed = 2147483646;
  if (!data.seed && (spec.run.seed < 0 || spec.run.seed > most_seed))
    findings.error("data.seed", "is left out, and run.seed is too large for the order of indexed data", spec.run.seed,
                   "0 to " + std::to_string(most_seed), "0");
  if (!data.shuffle)
    findings.error("data.shuffle", "indexed data have the order of their index, which is always shuffled", "false",
                   "true", "true");
  if (data.validation_fraction > 0)
    findings.error("data.validation_fraction", "indexed data are divided by data.split", {}, "0", "0");
  if (data.weights.size() == 1 && data.paths.size() == 1)
    findings.note("data.weights", "a single dataset gives all samples, whatever its weight");
  if (data.consumed_samples.size() > 3)
    findings.error("data.consumed_samples", "has more entries than training, validation and test",
                   std::ssize(data.consumed_samples), "those of training, validation and test");
  const std::int64_t batch = spec.accumulation.micro_batch * spec.parallel.data;
  const std::int64_t consumed = consumed_samples_of(data, DatasetSplit::train);
  if (is_cyclic(data) && batch > 0 && consumed % batch != 0)
    findings.error("data.consumed_samples", "a cyclic sampler goes on after whole batches of all replicas", consumed,
                   "a multiple of " + std::to_string(batch), consumed / batch * batch);
  if (data.consumed_samples.size() == 3 && data.consumed_samples[2] > 0)
    findings.warn("data.consumed_samples", "has no effect on a test, since a run reads no test samples",
                  data.consumed_samples[2], "0");
  for (const auto& [key, set] : {std::pair("data.mask_end_of_document", data.mask_end_of_document),
                                 std::pair("data.reset_positions", data.reset_positions),
                                 std::pair("data.reset_attention", data.reset_attention)})
    if (set && is_masked_model(spec))
      findings.error(key, "is for a GPT", "true", "false", "false");
    else if (set && !data.end_of_document)
      findings.error("data.end_of_document", std::string(key) + " needs the token that ends a document", {},
                     "the end_of_document of the dataset's .json file");
  if (data.end_of_document && *data.end_of_document >= spec.model.vocabulary)
    findings.error("data.end_of_document", "is not a token of the model", *data.end_of_document,
                   "below " + std::to_string(spec.model.vocabulary));
}

void check_amount(const RunSpec& spec, const DataFacts& data, Findings& findings) {
  const std::int64_t micro = spec.accumulation.micro_batch;
  const std::int64_t ranks = spec.parallel.data;
  const std::string samples = counted(data.samples, "sample");
  const std::string all_ranks = std::to_string(micro) + " x " + counted(ranks, "rank");
  const std::int64_t share = std::max<std::int64_t>(1, data.samples / ranks);
  if (make_order(spec, data).batches_per_epoch() < 1)
    findings.error("accumulation.micro_batch",
                   "the data do not fill one micro-step on every rank, and incomplete ones are dropped", all_ranks,
                   "at most " + samples, share);
  else if (ranks > data.samples)
    findings.warn("parallel.data", "there are more ranks than samples", counted(ranks, "rank"), samples,
                  std::max<std::int64_t>(1, data.samples));
  else if (micro > data.samples)
    findings.warn("accumulation.micro_batch", "is larger than the data", micro, "at most " + samples, share);
  else if (micro * ranks > data.samples)
    findings.warn("accumulation.micro_batch", "one micro-step over all ranks is larger than the data", all_ranks,
                  "at most " + samples, share);
}

/// What a run is judged by must be measured, between two windows.
void check_measures(const RunSpec& spec, const DataFacts& data, Findings& findings) {
  for (const auto& [key, by] :
       {std::pair("run.stop_when", spec.run.stop_when), std::pair("checkpoint.best", spec.checkpoint.best)}) {
    if (by == RunMeasure::none) continue;
    if (spec.evaluate.every_updates == 0)
      findings.error(key, "is never measured, since no evaluation is scheduled between two windows", quoted(by),
                     "evaluate.every_updates above 0, or \"none\"", "none");
    else if (data.validation_samples == 0)
      findings.error(key, "is never measured, since no samples are set aside for it", quoted(by),
                     spec.data.kind == DataKind::indexed ? "a part for evaluation in data.split, or \"none\""
                                                         : "data.validation_fraction above 0, or \"none\"",
                     "none");
  }
}

/// A BERT and a T5 read documents of sentences.
bool check_sentences(const RunSpec& spec, Findings& findings) {
  const ModelSpec& model = spec.model;
  const bool t5 = model.kind == ModelKind::t5;
  if (spec.data.kind == DataKind::indexed) return true;
  if (spec.data.kind != DataKind::synthetic) {
    findings.error(
        "data.kind",
        std::string("gives no sentences for a ") + (t5 ? "T5" : "BERT") +
            " to fill in: make an indexed dataset with \"accrue-run data build TEXT --out PREFIX --sentences\"",
        quoted(spec.data.kind), "\"indexed\" or \"synthetic\"", "synthetic");
    return false;
  }
  const auto least = [&findings](const char* key, std::int64_t found, std::int64_t needed) {
    if (found < needed)
      findings.error(key, "is too small to make samples of", found, "at least " + std::to_string(needed), needed);
  };
  least("model.context", model.context, least_synthetic_context);
  if (t5) least("model.decoder_context", model.tokens_of_decoder(), least_synthetic_context);
  least("model.vocabulary", model.vocabulary, synthetic_special_tokens(model) + 4);
  return true;
}

}  // namespace

bool check_kinds(const RunSpec& spec, Findings& findings) {
  const DataKind kind = spec.data.kind;
  if (spec.model.kind == ModelKind::bert || spec.model.kind == ModelKind::t5) return check_sentences(spec, findings);
  const bool gpt = is_decoder_only(spec.model.kind);
  const bool tokens = kind == DataKind::text || kind == DataKind::tokens || kind == DataKind::indexed;
  if (kind == DataKind::synthetic || gpt == tokens) return true;
  findings.error(
      "data.kind",
      gpt ? "does not give the tokens that a GPT is trained on" : "gives tokens, and this model takes numbers",
      quoted(kind),
      gpt ? "\"text\", \"tokens\", \"indexed\" or \"synthetic\""
          : "\"csv\", \"inline\" or \"synthetic\"; or model.kind = \"gpt\"",
      "synthetic");
  return false;
}

void check_data(const RunSpec& spec, const DataFacts& data, Findings& findings) {
  check_widths(spec, data, findings);
  check_inline(spec, findings);
  check_validation_keys(spec, findings);
  if (spec.data.kind == DataKind::text && holds_json_lines(spec.data.path))
    findings.warn("data.path", "is JSON by its name, and its braces and keys are trained on like its texts", {},
                  "a text, or the dataset that accrue-run data build makes of it");
  check_indexed(spec, findings);
  check_amount(spec, data, findings);
  check_measures(spec, data, findings);
  if (data.validation_samples > 0) return;
  for (const auto& [key, every] : {std::pair("evaluate.every_updates", spec.evaluate.every_updates),
                                   std::pair("evaluate.every_micro_steps", spec.evaluate.every_micro_steps)})
    if (every > 0)
      findings.warn(key, "there is nothing to evaluate on, since no samples are set aside for it", every,
                    spec.data.kind == DataKind::indexed ? "0, or a part for evaluation in data.split"
                                                        : "0, or data.validation_fraction above 0",
                    "0");
}

}  // namespace accrue::preflight_detail
