// SPDX-License-Identifier: Apache-2.0
// Checks of the model and of the run's end.
#include <algorithm>

#include "accrue/run/base/counted.h"
#include "accrue/run/fields/block_form.h"
#include "accrue/run/fields/model_loss.h"
#include "accrue/run/fields/spec_fields.h"
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

// Keys of a decoder's form that contradict each other, or that another kind would leave unread.
void check_form(const ModelSpec& model, Findings& findings) {
  const auto left_out = [&findings, &model](const char* key, bool given) {
    if (given)
      findings.error(key, "is for a GPT and a Llama", "model.kind = " + quoted(model.kind), "the key left out", "");
  };
  if (!is_decoder_only(model.kind)) {
    left_out("model.kv_heads", model.kv_heads.has_value());
    left_out("model.head_width", model.head_width.has_value());
    left_out("model.mlp_width", model.mlp_width.has_value());
    left_out("model.norm", model.norm.has_value());
    left_out("model.norm_eps", model.norm_eps.has_value());
    left_out("model.positions", model.positions.has_value());
    left_out("model.qkv_bias", model.qkv_bias.has_value());
    left_out("model.tied_head", model.tied_head.has_value());
    const bool dense = !is_transformer(model.kind);
    if (!dense) left_out("model.bias", model.bias.has_value());
    if (!dense) left_out("model.activation", model.activation.has_value());
    if (dense && (model.activation == Activation::swiglu || model.activation == Activation::gelu_tanh))
      findings.error("model.activation", "is for the blocks of a GPT and a Llama", quoted(*model.activation),
                     "\"relu\", \"gelu\" or \"tanh\"", "gelu");
    return;
  }
  const BlockForm form = block_form(model);
  if (form.heads % form.kv_heads != 0)
    findings.error("model.kv_heads", "does not divide model.heads", form.kv_heads,
                   "a divisor of " + std::to_string(form.heads), dividing_heads(form.heads, form.kv_heads));
  if (form.activation == Activation::tanh || form.activation == Activation::relu)
    findings.error("model.activation", "is not offered in blocks", quoted(form.activation),
                   "\"gelu\", \"gelu_tanh\" or \"swiglu\"", "gelu_tanh");
  if (form.positions != PositionKind::rotary) return;
  if (form.head_width % 2 != 0)
    findings.error("model.head_width", "must be even, because rotary positions turn pairs of numbers", form.head_width,
                   "an even number");
  const auto& scaling = model.rotary_scaling;
  const bool four = scaling.size() == 4 && std::ranges::all_of(scaling, [](double each) { return each > 0; });
  if (!scaling.empty() && (!four || scaling[2] <= scaling[1]))
    findings.error("model.rotary_scaling",
                   "must be four numbers above 0: factor, low and high frequency factor, context before",
                   format_value(SpecValue(scaling)), "for example [8, 1, 4, 8192]", "[]");
}

}  // namespace

void check_model(const RunSpec& spec, Findings& findings) {
  const ModelSpec& model = spec.model;
  const bool transformer = is_transformer(model.kind);
  check_form(model, findings);
  if (transformer && !model.head_width && model.width % model.heads != 0)
    findings.error("model.heads", "does not divide model.width", model.heads,
                   "a divisor of " + std::to_string(model.width), dividing_heads(model.width, model.heads));
  if (transformer && loss_of(model) != LossKind::cross_entropy)
    findings.error("model.loss", "does not fit this model, which predicts tokens", "\"mse\"", "\"cross_entropy\"",
                   "cross_entropy");
  // For a half type the head uses plain operators anyway.
  const bool fused_head =
      is_decoder_only(model.kind) && is_gpt2_form(block_form(model)) && dtype_bytes(model.dtype) >= 4;
  if (model.label_smoothing > 0.0 && fused_head && spec.launch.device == DeviceKind::cpu)
    findings.note(
        "model.label_smoothing",
        "computes the loss in plain operators, which keep all logits of a micro-batch: the fused head does not "
        "smooth");
  const std::int64_t parameters = parameter_totals(model, spec.parallel.tensor).numel;
  if (model.init != WeightInit::values && !model.values.empty())
    findings.warn("model.values", "is not used, since model.init is not \"values\"", {}, {}, "[]");
  if (model.init != WeightInit::checkpoint && !model.weights.empty())
    findings.warn("model.weights", "is not used, since model.init is not \"checkpoint\"", {}, {}, "");
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
