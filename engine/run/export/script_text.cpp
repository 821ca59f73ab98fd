// SPDX-License-Identifier: Apache-2.0
#include "script_text.h"

#include <fmt/format.h>

#include "accrue/run/cost/parameter_groups.h"
#include "accrue/run/fields/block_form.h"
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
  set(text, shuffles ? "shuffled" : "in-order", repeats ? "repeat" : "short");
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

void add_model(ScriptText& text, const ModelSpec& model) {
  set(text, "model", to_name(model.kind));
  set(text, model.kind == ModelKind::gpt ? "gpt-init" : "init", to_name(model.init));
  if (model.kind == ModelKind::mlp)
    set(text, "hidden",
        fmt::format("{}{}", model.batch_norm ? "normed" : "plain",
                    hidden_activation(model) == Activation::tanh ? "-tanh" : ""));
  text.values["ACTIVATION"] = to_name(hidden_activation(model));
  text.values["BIAS"] = python(layers_have_bias(model));
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
  set(text, "tail", script_windows(plan).flush ? "flushed" : "joined");
  // Gradients are averaged over the ranks: summed ones are their mean times the number of ranks.
  const std::string_view of = counts ? (all ? "run" : "rank") : (knobs.reduce_op == ReduceOp::sum ? "sum" : "mean");
  set(text, fmt::format("{}-normalizer", of), to_name(knobs.normalizer));
  text.values["DIVISION"] = division(knobs);
}

/// The schedule position of an update.
void add_position(ScriptText& text, const RunPlan& plan) {
  switch (plan.knobs.schedule_clock) {
    case ScheduleClock::update_times_world: {
      const bool guarded = plan.knobs.total_guard && plan.window.schedule_total;
      set(text, "position", guarded ? "guarded" : "update_times_world");
      if (guarded) text.values["LAST"] = std::to_string(*plan.window.schedule_total);
      return;
    }
    case ScheduleClock::micro_step:
    case ScheduleClock::external:
      return set(text, "position", "micro_step");
    default:
      return set(text, "position", "update");
  }
}

void add_rate(ScriptText& text, const RunPlan& plan) {
  const LrCurve& curve = plan.curve;
  const bool never_decays = curve.kind == ScheduleKind::wsd && curve.decay_fraction <= 0.0;
  const ScheduleKind kind = never_decays ? ScheduleKind::constant : curve.kind;
  if (curve.kind != ScheduleKind::constant || curve.warmup > 0.0) add_position(text, plan);
  set_if(text, curve.warmup > 0.0, "warm-up");
  set(text, "schedule", to_name(kind));
  if (kind == ScheduleKind::wsd) set(text, "decay-tail", to_name(curve.decay_tail));
  text.values["GAMMA"] = python(curve.gamma);
  text.values["DECAY"] = python(curve.decay_fraction);
}

void add_groups(ScriptText& text, const OptimizerSpec& optimizer) {
  const bool several = optimizer.weight_decay != 0.0 || !optimizer.scaled_lr.empty();
  set(text, "groups", several ? "several" : "one");
  if (!several) return;
  set_if(text, optimizer.no_decay || !optimizer.scaled_lr.empty(), "globs");
  set(text, "decays", optimizer.no_decay ? "named" : "matrices");
  set(text, "factor", optimizer.scaled_lr.empty() ? "one" : "scaled");
  if (optimizer.no_decay) text.values["NO_DECAY"] = python_list(*optimizer.no_decay);
  text.values["LR_MULT"] = python(optimizer.lr_mult);
  text.values["SCALED_LR"] = python_list(optimizer.scaled_lr);
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
