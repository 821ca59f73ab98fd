// SPDX-License-Identifier: Apache-2.0
// Source of the keys: DeepSpeed's configuration reference (docs/_pages/config-json.md).
#include <algorithm>

#include "accrue/run/fields/choice_names.h"
#include "export_rules.h"
#include "json_text.h"
#include "other_formats.h"

namespace accrue::export_detail {

namespace {

Json optimizer_of(const OptimizerSpec& optimizer) {
  Json params{{"lr", optimizer.lr}, {"weight_decay", optimizer.weight_decay}};
  if (optimizer.kind == OptimizerKind::sgd || optimizer.kind == OptimizerKind::fused_sgd) {
    params["momentum"] = optimizer.momentum;
    return {{"type", "SGD"}, {"params", std::move(params)}};
  }
  params["betas"] = {optimizer.beta1, optimizer.beta2};
  params["eps"] = epsilon_of(optimizer);
  if (optimizer.kind == OptimizerKind::lamb || optimizer.kind == OptimizerKind::fused_lamb)
    return {{"type", "Lamb"}, {"params", std::move(params)}};
  const bool apart =
      optimizer.kind == OptimizerKind::adamw || (optimizer.kind != OptimizerKind::adam && optimizer.adamw_mode);
  return {{"type", apart ? "AdamW" : "Adam"}, {"params", std::move(params)}};
}

/// In DeepSpeed's units: its scheduler advances at each update.
Json schedule_of(const RunPlan& plan) {
  const double peak = plan.curve.lr;
  const auto warmup = plan.warmup_updates;
  const std::int64_t length = schedule_updates(plan).value_or(plan.totals.updates);
  switch (plan.curve.kind) {
    case ScheduleKind::linear:
      return {{"type", "WarmupDecayLR"},
              {"params",
               {{"warmup_min_lr", 0.0},
                {"warmup_max_lr", peak},
                {"warmup_num_steps", warmup},
                {"warmup_type", "linear"},
                {"total_num_steps", length}}}};
    case ScheduleKind::cosine:
      return {{"type", "WarmupCosineLR"},
              {"params",
               {{"warmup_min_ratio", 0.0},
                {"warmup_num_steps", warmup},
                {"cos_min_ratio", plan.curve.min_lr / peak},
                {"total_num_steps", length}}}};
    default:
      return {
          {"type", "WarmupLR"},
          {"params",
           {{"warmup_min_lr", 0.0}, {"warmup_max_lr", peak}, {"warmup_num_steps", warmup}, {"warmup_type", "linear"}}}};
  }
}

bool has_schedule(const RunPlan& plan) {
  return plan.curve.warmup > 0.0 || plan.curve.kind == ScheduleKind::linear || plan.curve.kind == ScheduleKind::cosine;
}

}  // namespace

std::string deepspeed_json(const RunPlan& plan, const std::vector<NotCarried>& missing) {
  const RunSpec& spec = plan.spec;
  Json json;
  json["train_batch_size"] = plan.order.micro_batch * plan.window.steps * plan.order.world;
  json["train_micro_batch_size_per_gpu"] = plan.order.micro_batch;
  json["gradient_accumulation_steps"] = plan.window.steps;
  json["optimizer"] = optimizer_of(spec.optimizer);
  if (has_schedule(plan)) json["scheduler"] = schedule_of(plan);
  if (spec.optimizer.clip_norm > 0.0) json["gradient_clipping"] = spec.optimizer.clip_norm;
  if (spec.model.dtype == Dtype::bfloat16) json["bf16"] = {{"enabled", true}};
  if (spec.model.dtype == Dtype::float16) {
    const double first = spec.optimizer.loss_scale.value_or(usual_loss_scale);
    std::int64_t power = 0;
    for (double scale = first; scale >= 2.0; scale /= 2.0) ++power;
    json["fp16"] = {{"enabled", true},
                    {"loss_scale", 0},
                    {"initial_scale_power", power},
                    {"loss_scale_window", spec.optimizer.loss_scale_window},
                    {"hysteresis", spec.optimizer.loss_scale_hysteresis},
                    {"min_loss_scale", spec.optimizer.min_loss_scale.value_or(1.0)}};
  }
  json["zero_optimization"] = {{"stage", spec.parallel.zero}};
  Json list = Json::array();
  for (const NotCarried& each : missing) list.push_back({{"key", each.key}, {"value", each.value}, {"why", each.why}});
  json["accrue"] = {{"processes", plan.order.world},
                    {"updates", plan.totals.updates},
                    {"arithmetic", one_line(plan.arithmetic())},
                    {"not_carried", std::move(list)}};
  return json_text(json, 2) + "\n";
}

}  // namespace accrue::export_detail
