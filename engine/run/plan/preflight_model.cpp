// SPDX-License-Identifier: Apache-2.0
// Checks of the model, the optimizer with its schedule, and the run's end.

#include "accrue/run/choice_names.h"
#include "parameter_totals.h"
#include "preflight_checks.h"
#include "spec_text.h"

namespace accrue::preflight_detail {

namespace {

using spec_detail::in_quotes;
using spec_detail::real_text;

// A number of heads near the wished one that divides the width.
std::int64_t dividing_heads(std::int64_t width, std::int64_t heads) {
  for (std::int64_t distance = 0; distance < heads; ++distance)
    if (width % (heads - distance) == 0) return heads - distance;
  return 1;
}

void check_values_given(const ModelSpec& model, Findings& findings) {
  if (model.init != WeightInit::values) {
    if (!model.values.empty())
      findings.warn("model.values", "is not used, since model.init is not \"values\"").fix_value = "[]";
    return;
  }
  const std::int64_t count = parameter_totals(model).numel;
  if (static_cast<std::int64_t>(model.values.size()) == count) return;
  findings.error("model.values", "does not have one number for each parameter", std::to_string(model.values.size()),
                 std::to_string(count) + " numbers");
}

}  // namespace

void check_model(const RunSpec& spec, Findings& findings) {
  const ModelSpec& model = spec.model;
  if (model.kind == ModelKind::gpt) {
    if (model.width % model.heads != 0)
      findings
          .error("model.heads", "does not divide model.width", std::to_string(model.heads),
                 "a divisor of " + std::to_string(model.width))
          .fix_value = std::to_string(dividing_heads(model.width, model.heads));
    if (loss_of(model) != LossKind::cross_entropy)
      findings.error("model.loss", "does not fit a GPT, which predicts classes", "\"mse\"", "\"cross_entropy\"")
          .fix_value = "cross_entropy";
  }
  check_values_given(model, findings);
  constexpr std::int64_t most_recorded = 1000;
  if (spec.run.record_weights && parameter_totals(model).numel >= most_recorded)
    findings
        .error("run.record_weights", "is for small models only",
               std::to_string(parameter_totals(model).numel) + " parameters", "under " + std::to_string(most_recorded))
        .fix_value = "false";
}

void check_optimizer(const RunSpec& spec, Findings& findings) {
  const ScheduleSpec& schedule = spec.schedule;
  const bool falls = schedule.kind != ScheduleKind::constant;
  if (falls && schedule.min_lr > spec.optimizer.lr)
    findings
        .error("schedule.min_lr", "is above the learning rate", real_text(schedule.min_lr),
               "at most optimizer.lr = " + real_text(spec.optimizer.lr))
        .fix_value = real_text(spec.optimizer.lr);
  if (has_end(schedule.kind) && schedule.total && schedule.warmup >= *schedule.total)
    findings.warn("schedule.warmup", "the warm-up is as long as the schedule, so the rate never falls along its curve",
                  std::to_string(schedule.warmup), "less than schedule.total = " + std::to_string(*schedule.total));
}

void check_run(const RunSpec& spec, Findings& findings) {
  const RunSection& run = spec.run;
  const std::pair<std::string_view, bool> limits[] = {{"run.updates", run.updates.has_value()},
                                                      {"run.epochs", run.epochs.has_value()},
                                                      {"run.samples", run.samples.has_value()},
                                                      {"run.tokens", run.tokens.has_value()}};
  std::string_view first;
  for (const auto& [key, set] : limits) {
    if (!set) continue;
    if (first.empty()) {
      first = key;
      continue;
    }
    findings
        .error(key, "a run has exactly one length", std::string(key) + " beside " + std::string(first),
               "one of updates, epochs, samples and tokens")
        .fix_value = "";
  }
}

}  // namespace accrue::preflight_detail
