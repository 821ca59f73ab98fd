// SPDX-License-Identifier: Apache-2.0
#include "script_text.h"

#include <fmt/format.h>

#include "accrue/run/cost/parameter_groups.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/model_loss.h"
#include "export_rules.h"
#include "python_literal.h"

namespace accrue::export_detail {

namespace {

void set_if(ScriptText& text, bool condition, std::string_view block) {
  if (condition) text.blocks.emplace(block);
}

/// The block "fact=name".
void set(ScriptText& text, std::string_view fact, std::string_view name) {
  text.blocks.insert(fmt::format("{}={}", fact, name));
}

void add_order(ScriptText& text, const RunPlan& plan) {
  const bool shuffles = plan.order.shuffle;
  const bool repeats = plan.order.uneven == UnevenRanks::repeat && plan.order.world > 1;
  set_if(text, shuffles || plan.spec.data.kind == DataKind::synthetic, "mixes");
  set_if(text, shuffles, "shuffles");
  set(text, "uneven", repeats ? "repeat" : "short");
  text.values["SAMPLE"] = shuffles ? "shuffled(epoch, place)" : "place";
}

std::string inline_rows(const Matrix& rows, std::int64_t count) {
  std::string text = "[";
  for (std::size_t row = 0; row < rows.size() && static_cast<std::int64_t>(row) < count; ++row)
    text += (row > 0 ? ", " : "") + python_list(rows[row]);
  return text + "]";
}

void add_data(ScriptText& text, const RunPlan& plan) {
  const DataSpec& data = plan.spec.data;
  const ModelSpec& model = plan.spec.model;
  const bool tokens = model.kind == ModelKind::gpt;
  const bool labels = !tokens && loss_of(model) == LossKind::cross_entropy;
  const std::string dtype = model.dtype == Dtype::float64 ? "torch.float64" : "torch.float32";
  if (tokens)
    set(text, "tokens", data.kind == DataKind::synthetic ? "synthetic" : "file");
  else
    set(text, "rows", to_name(data.kind));
  if (labels) set(text, "labels", to_name(data.kind));
  set(text, "loss", tokens ? "tokens" : to_name(loss_of(model)));
  text.values["TOKEN_TYPE"] = data.kind == DataKind::text   ? "torch.uint8"
                              : data.token_type == "uint32" ? "torch.uint32"
                                                            : "torch.uint16";
  text.values["X"] = inline_rows(data.x, plan.data.samples);
  text.values["Y"] = inline_rows(data.y, plan.data.samples);
  text.values["DTYPE"] = dtype;
  text.values["TARGET"] = labels ? "torch.long" : dtype;
}

std::string activation(const ModelSpec& model) {
  std::string inner = "layer(x)";
  if (model.batch_norm) inner = "F.batch_norm(layer(x), None, None, training=True)";
  if (model.activation == Activation::tanh) return fmt::format("torch.tanh({})", inner);
  return fmt::format("F.{}({})", to_name(model.activation), inner);
}

void add_model(ScriptText& text, const ModelSpec& model) {
  set(text, "model", to_name(model.kind));
  set(text, model.kind == ModelKind::gpt ? "gpt-init" : "init", to_name(model.init));
  text.values["ACTIVATION"] = activation(model);
  text.values["BIAS"] = python(model.bias);
  text.values["RESIDUAL"] = model.init == WeightInit::normal ? "0.02" : "0.02 / math.sqrt(2 * LAYERS)";
  text.values["VALUES"] = python_list(model.values);
}

/// Returns the divisor of a window's losses in words.
std::string_view division(const AccumulationKnobs& knobs) {
  switch (knobs.normalizer) {
    case Normalizer::tokens:
      return counts_over_ranks(knobs) ? "a window's sum is divided by the items of all ranks"
                                      : "a window's sum is divided by the rank's items";
    case Normalizer::samples:
      return "a window's means are weighted by their samples";
    case Normalizer::true_size:
    case Normalizer::run_remainder:
      return "the mean of a micro-batch, divided by the window's own length";
    case Normalizer::none:
      return "the mean of a micro-batch, which nothing divides";
    case Normalizer::steps:
      break;
  }
  return "the mean of a micro-batch, divided by N in a short window too";
}

void add_windows(ScriptText& text, const RunPlan& plan) {
  const AccumulationKnobs& knobs = plan.knobs;
  const bool all = counts_over_ranks(knobs);
  const bool counts = knobs.normalizer == Normalizer::tokens || knobs.normalizer == Normalizer::samples;
  const std::string_view run_ends = "micro_steps == MICRO_STEPS";
  text.values["ENDS"] = fmt::format("{}{}", script_windows(plan).flush ? "batch + 1 == BATCHES or " : "", run_ends);
  set(text, "normalizer", to_name(knobs.normalizer));
  text.values["DIVISION"] = division(knobs);
  text.values["COUNTED"] = all ? "[samples_of(epoch, batch, r) for epoch, batch in window for r in range(RANKS)]"
                               : "[samples_of(epoch, batch, rank) for epoch, batch in window]";
  // Gradients are averaged over the ranks: summed ones are their mean times the number of ranks.
  if (counts)
    text.values["SHARE"] = all ? "RANKS" : "1.0";
  else
    text.values["SHARE"] = knobs.reduce_op == ReduceOp::sum ? "RANKS * 1.0" : "1.0";
}

/// The share of WSD's decay that is left of the peak, from `left` of its length; as lr_at() has it.
std::string_view tail(DecayTail tail) {
  switch (tail) {
    case DecayTail::cosine:
      return "0.5 * (1.0 + math.cos(math.pi * (1.0 - left)))";
    case DecayTail::exponential:
      return "2.0 * 0.5 ** (1.0 - left) - 1.0";
    case DecayTail::minus_square_root:
      return "1.0 - math.sqrt(1.0 - left)";
    case DecayTail::linear:
      break;
  }
  return "left";
}

void add_rate(ScriptText& text, const RunPlan& plan) {
  const LrCurve& curve = plan.curve;
  const bool never_decays = curve.kind == ScheduleKind::wsd && curve.decay_fraction <= 0.0;
  set_if(text, curve.kind != ScheduleKind::constant || curve.warmup > 0.0, "moves");
  set_if(text, curve.warmup > 0.0, "warm-up");
  set(text, "schedule", to_name(never_decays ? ScheduleKind::constant : curve.kind));
  text.values["POSITION"] = position_code(plan);
  text.values["GAMMA"] = python(curve.gamma);
  text.values["DECAY"] = python(curve.decay_fraction);
  text.values["TAIL"] = tail(curve.decay_tail);
}

void add_groups(ScriptText& text, const OptimizerSpec& optimizer) {
  const bool several = optimizer.weight_decay != 0.0 || !optimizer.scaled_lr.empty();
  set(text, "groups", several ? "several" : "one");
  set_if(text, several && (optimizer.no_decay || !optimizer.scaled_lr.empty()), "globs");
  text.values["DECAYS"] = optimizer.no_decay ? fmt::format("not matches(name, {})", python_list(*optimizer.no_decay))
                                             : "parameter.dim() > 1";
  text.values["FACTOR"] = optimizer.scaled_lr.empty()
                              ? "1.0"
                              : fmt::format("{} if matches(name, {}) else 1.0", python(optimizer.lr_mult),
                                            python_list(optimizer.scaled_lr));
}

void add_optimizer(ScriptText& text, const OptimizerSpec& optimizer) {
  const bool sgd = optimizer.kind == OptimizerKind::sgd || optimizer.kind == OptimizerKind::fused_sgd;
  const bool apart =
      optimizer.kind == OptimizerKind::adamw || (optimizer.kind != OptimizerKind::adam && optimizer.adamw_mode);
  set(text, "optimizer", sgd ? "sgd" : "adam");
  text.values["ADAM"] = apart ? "AdamW" : "Adam";
  text.values["MOMENTUM"] = python(optimizer.momentum);
  text.values["DAMPENING"] = python(optimizer.dampening);
  text.values["NESTEROV"] = python(optimizer.nesterov);
  text.values["BETA1"] = python(optimizer.beta1);
  text.values["BETA2"] = python(optimizer.beta2);
  text.values["EPS"] = python(epsilon_of(optimizer));
}

void add_loop(ScriptText& text, const RunPlan& plan) {
  const bool norm = plan.knobs.clip_kind == ClipKind::norm;
  const bool by_epoch = plan.knobs.tail != EpochTail::carry;
  const bool cuda = plan.spec.launch.device == DeviceKind::cuda;
  set_if(text, plan.spec.optimizer.clip_norm > 0.0 && plan.knobs.clip_stage == ClipStage::in_update, "clips");
  set(text, "device", to_name(plan.spec.launch.device));
  set(text, "epochs", by_epoch ? "apart" : "joined");
  text.values["CLIP_GRAD"] = norm ? "clip_grad_norm_" : "clip_grad_value_";
  text.values["ALGORITHM"] = norm ? R"("norm")" : R"("value")";
  text.values["ACCELERATOR"] = cuda ? R"("gpu")" : R"("cpu")";
  text.values["STRATEGY"] = plan.order.world > 1 ? R"("ddp")" : R"("auto")";
  text.values["RELOAD"] = by_epoch ? "1" : "0";
}

}  // namespace

ScriptText script_text(const RunPlan& plan) {
  ScriptText text;
  add_order(text, plan);
  add_data(text, plan);
  add_model(text, plan.spec.model);
  add_windows(text, plan);
  add_rate(text, plan);
  add_groups(text, plan.spec.optimizer);
  add_optimizer(text, plan.spec.optimizer);
  add_loop(text, plan);
  return text;
}

}  // namespace accrue::export_detail
