// SPDX-License-Identifier: Apache-2.0
// Checks of the model and of the run's end.
#include "accrue/run/base/counted.h"
#include "accrue/run/fields/model_loss.h"
#include "memory_estimate.h"
#include "parameter_totals.h"
#include "preflight_checks.h"

namespace accrue::preflight_detail {

namespace {

// The largest number of heads, up to the requested one, that divides the width.
std::int64_t dividing_heads(std::int64_t width, std::int64_t heads) {
  while (width % heads != 0) --heads;
  return heads;
}

}  // namespace

void check_model(const RunSpec& spec, Findings& findings) {
  const ModelSpec& model = spec.model;
  const bool transformer = is_transformer(model.kind);
  if (transformer && model.width % model.heads != 0)
    findings.error("model.heads", "does not divide model.width", model.heads,
                   "a divisor of " + std::to_string(model.width), dividing_heads(model.width, model.heads));
  if (transformer && loss_of(model) != LossKind::cross_entropy)
    findings.error("model.loss", "does not fit this model, which predicts tokens", "\"mse\"", "\"cross_entropy\"",
                   "cross_entropy");
  // For a half type the head uses plain operators anyway.
  const bool fused_head = model.kind == ModelKind::gpt && dtype_bytes(model.dtype) >= 4;
  if (model.label_smoothing > 0.0 && fused_head && spec.launch.device == DeviceKind::cpu)
    findings.note(
        "model.label_smoothing",
        "computes the loss in plain operators, which keep all logits of a micro-batch: the fused head does not "
        "smooth");
  const std::int64_t parameters = parameter_totals(model, spec.parallel.tensor).numel;
  if (model.init != WeightInit::values && !model.values.empty())
    findings.warn("model.values", "is not used, since model.init is not \"values\"", {}, {}, "[]");
  const auto values = static_cast<std::int64_t>(model.values.size());
  if (model.init == WeightInit::values && values != parameters)
    findings.error("model.values", "does not have one number for each parameter", values,
                   counted(parameters, "number"));
  constexpr std::int64_t most_recorded = 1000;
  if (spec.run.record_weights && parameters >= most_recorded)
    findings.error("run.record_weights", "is for small models only", counted(parameters, "parameter"),
                   "under " + std::to_string(most_recorded), "false");
}

void check_run(const RunSpec& spec, Findings& findings) {
  const RunSection& run = spec.run;
  const std::pair<std::string, bool> limits[] = {{"run.updates", run.updates.has_value()},
                                                 {"run.epochs", run.epochs.has_value()},
                                                 {"run.samples", run.samples.has_value()},
                                                 {"run.tokens", run.tokens.has_value()}};
  std::string first;
  for (const auto& [key, set] : limits) {
    if (set && !first.empty())
      findings.error(key, "only one key may limit a run", key + " beside " + first,
                     "one of updates, epochs, samples and tokens", "");
    if (set && first.empty()) first = key;
  }
}

}  // namespace accrue::preflight_detail
