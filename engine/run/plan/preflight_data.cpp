// SPDX-License-Identifier: Apache-2.0
// Checks of the data against the model and the ranks.
#include <algorithm>
#include <cmath>

#include "accrue/run/choice_names.h"
#include "accrue/run/data_split.h"
#include "plan_derivation.h"
#include "preflight_checks.h"
#include "spec_text.h"

namespace accrue::preflight_detail {

namespace {

std::string name_of(DataKind kind) {
  return "\"" + std::string(to_name(kind)) + "\"";
}

bool is_ragged(const RunSpec& spec) {
  return spec.data.kind == DataKind::inline_ && !spec.data.sequences.empty();
}

void check_inline(const RunSpec& spec, Findings& findings) {
  const DataSpec& data = spec.data;
  const bool table = !data.x.empty() || !data.y.empty();
  const bool ragged = !data.sequences.empty() || !data.labels.empty();
  if (data.kind == DataKind::inline_ && table && ragged)
    findings.error("data.sequences", "cannot be combined with x and y", "", "either x and y, or sequences and labels")
        .fix_value = "[]";
  if (data.kind != DataKind::inline_ && (table || ragged))
    findings.warn(table ? "data.x" : "data.sequences", "is not used, since data.kind is not \"inline\"",
                  name_of(data.kind), "data.kind = \"inline\"");
}

void check_sequences(const RunSpec& spec, const DataFacts& data, Findings& findings) {
  if (spec.model.kind != ModelKind::linear)
    findings
        .error("model.kind", "sequences are for a linear model", "\"" + std::string(to_name(spec.model.kind)) + "\"",
               "\"linear\"")
        .fix_value = "linear";
  if (loss_of(spec.model) != LossKind::cross_entropy)
    findings.error("model.loss", "sequences have labels, which need a loss of classes", "\"mse\"", "\"cross_entropy\"")
        .fix_value = "cross_entropy";
  if (spec.model.inputs != 1)
    findings.error("model.inputs", "each number of a sequence is one position", std::to_string(spec.model.inputs), "1")
        .fix_value = "1";
  for (const auto& row : spec.data.labels)
    for (const std::int64_t label : row) {
      if (label == ignored_label || (label >= 0 && label < spec.model.outputs)) continue;
      Finding& finding = findings.error("data.labels", "a label is not a class of the model", std::to_string(label),
                                        "0 to " + std::to_string(spec.model.outputs - 1) + ", or -100");
      if (label > 0) finding.key = "model.outputs", finding.fix_value = std::to_string(data.outputs);
      return;
    }
}

// Targets of a loss of classes, written down one to a row.
void check_classes(const RunSpec& spec, Findings& findings) {
  double highest = 0.0;
  double wrong = static_cast<double>(ignored_label);
  for (const auto& row : spec.data.y) {
    const double label = row.empty() ? 0.0 : row.front();
    if (label == static_cast<double>(ignored_label)) continue;
    highest = std::max(highest, label);
    const bool fits = std::floor(label) == label && label >= 0.0 && label < static_cast<double>(spec.model.outputs);
    if (!fits && wrong == static_cast<double>(ignored_label)) wrong = label;
  }
  if (wrong == static_cast<double>(ignored_label)) return;
  const bool whole = std::floor(wrong) == wrong;
  Finding& finding =
      findings.error("data.y", "a label is not a class of the model",
                     whole ? std::to_string(static_cast<std::int64_t>(wrong)) : spec_detail::real_text(wrong),
                     "0 to " + std::to_string(spec.model.outputs - 1) + ", or -100");
  if (whole && wrong > 0.0 && highest < 1e6)
    finding.key = "model.outputs", finding.fix_value = std::to_string(static_cast<std::int64_t>(highest) + 1);
}

void check_widths(const RunSpec& spec, const DataFacts& data, Findings& findings) {
  if (spec.data.kind == DataKind::synthetic || spec.model.kind == ModelKind::gpt) return;
  if (is_ragged(spec)) return check_sequences(spec, data, findings);
  if (data.inputs != spec.model.inputs)
    findings
        .error("model.inputs", "does not fit the data", std::to_string(spec.model.inputs),
               std::to_string(data.inputs) + ", the columns of x")
        .fix_value = std::to_string(data.inputs);
  const bool labels = loss_of(spec.model) == LossKind::cross_entropy;
  if (labels && data.outputs != 1)
    findings.error(spec.data.kind == DataKind::csv ? "data.label_columns" : "data.y",
                   "a cross-entropy label is one column", std::to_string(data.outputs) + " columns", "1 column");
  if (labels && spec.data.kind == DataKind::inline_) check_classes(spec, findings);
  if (!labels && data.outputs != spec.model.outputs)
    findings
        .error("model.outputs", "does not fit the data", std::to_string(spec.model.outputs),
               std::to_string(data.outputs) + ", the columns of y")
        .fix_value = std::to_string(data.outputs);
}

void check_amount(const RunSpec& spec, const DataFacts& data, Findings& findings) {
  const std::int64_t micro = spec.accumulation.micro_batch;
  const std::int64_t ranks = spec.parallel.data;
  const std::string samples = std::to_string(data.samples) + (data.samples == 1 ? " sample" : " samples");
  if (make_order(spec, data).batches_per_epoch() < 1) {
    findings
        .error("accumulation.micro_batch",
               "the data do not fill one micro-step on every rank, and incomplete ones are dropped",
               std::to_string(micro) + " x " + std::to_string(ranks) + " ranks", "at most " + samples)
        .fix_value = std::to_string(std::max<std::int64_t>(1, data.samples / ranks));
  } else if (ranks > data.samples) {
    findings.warn("parallel.data", "there are more ranks than samples", std::to_string(ranks) + " ranks", samples)
        .fix_value = std::to_string(std::max<std::int64_t>(1, data.samples));
  } else if (micro > data.samples) {
    findings.warn("accumulation.micro_batch", "is larger than the data", std::to_string(micro), "at most " + samples)
        .fix_value = std::to_string(std::max<std::int64_t>(1, data.samples / ranks));
  } else if (micro * ranks > data.samples) {
    findings
        .warn("accumulation.micro_batch", "one micro-step over all ranks is larger than the data",
              std::to_string(micro) + " x " + std::to_string(ranks) + " ranks", "at most " + samples)
        .fix_value = std::to_string(std::max<std::int64_t>(1, data.samples / ranks));
  }
}

}  // namespace

bool check_kinds(const RunSpec& spec, Findings& findings) {
  const DataKind kind = spec.data.kind;
  const bool gpt = spec.model.kind == ModelKind::gpt;
  const bool tokens = kind == DataKind::text || kind == DataKind::tokens;
  if (kind == DataKind::synthetic || gpt == tokens) return true;
  if (gpt)
    findings
        .error("data.kind", "does not give the tokens that a GPT is trained on", name_of(kind),
               "\"text\", \"tokens\" or \"synthetic\"")
        .fix_value = "synthetic";
  else
    findings
        .error("data.kind", "gives tokens, and this model takes numbers", name_of(kind),
               "\"csv\", \"inline\" or \"synthetic\"; or model.kind = \"gpt\"")
        .fix_value = "synthetic";
  return false;
}

void check_data(const RunSpec& spec, const DataFacts& data, Findings& findings) {
  check_widths(spec, data, findings);
  check_inline(spec, findings);
  check_amount(spec, data, findings);
  if (spec.evaluate.every_updates > 0 && data.validation_samples == 0)
    findings
        .warn("evaluate.every_updates", "there is nothing to evaluate on, since no samples are set aside for it",
              std::to_string(spec.evaluate.every_updates), "0, or data.validation_fraction above 0")
        .fix_value = "0";
  if (spec.evaluate.every_micro_steps > 0 && data.validation_samples == 0)
    findings
        .warn("evaluate.every_micro_steps", "there is nothing to evaluate on, since no samples are set aside for it",
              std::to_string(spec.evaluate.every_micro_steps), "0, or data.validation_fraction above 0")
        .fix_value = "0";
}

}  // namespace accrue::preflight_detail
