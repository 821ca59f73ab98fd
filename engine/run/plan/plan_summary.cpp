// SPDX-License-Identifier: Apache-2.0
#include "plan_summary.h"

#include "accrue/run/cost/parameter_groups.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/plan/forecast.h"
#include "json_text.h"

namespace accrue {

namespace {

Json knobs_json(const AccumulationKnobs& knobs) {
  Json json;
  for_each_knob([&](const char* name, auto knob, auto) { json[name] = std::string(to_name(knobs.*knob)); });
  return json;
}

/// Writes an integer as such.
Json number_json(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) == value ? Json(whole) : Json(value);
}

Json groups_json(const RunPlan& plan) {
  Json list = Json::array();
  for (const ParameterGroupSize& each : parameter_groups(plan.spec.model, plan.spec.optimizer))
    list.push_back({{"parameters", each.parameters},
                    {"numel", each.numel},
                    {"weight_decay", each.group.weight_decay},
                    {"lr", each.group.lr},
                    {"decoupled", each.group.decoupled}});
  return list;
}

/// The stages, each with its first and last rank.
Json stages_json(const RunPlan& plan) {
  const std::int64_t alike = plan.grid.data * plan.grid.tensor;
  Json stages = Json::array();
  for (const RankCost& cost : plan.stages) {
    const std::int64_t first = std::ssize(stages) * alike;
    Json wire = Json::object();
    for (std::size_t axis = 0; axis < cost.wire.size(); ++axis)
      if (cost.wire[axis] > 0) wire[std::string(to_string(static_cast<Axis>(axis)))] = cost.wire[axis];
    stages.push_back({{"ranks", {first, first + alike - 1}},
                      {"memory_bytes",
                       {{"parameters", cost.parameters},
                        {"gradients", cost.gradients},
                        {"optimizer", cost.optimizer},
                        {"activations", cost.activations},
                        {"buffers", cost.buffers},
                        {"process", cost.process},
                        {"total", cost.total()}}},
                      {"chunks_in_flight", cost.chunks_in_flight},
                      {"wire_bytes_per_update", std::move(wire)}});
  }
  return stages;
}

}  // namespace

Json plan_summary(const RunPlan& plan) {
  const MemoryEstimate& memory = plan.memory;
  Json json = {{"arithmetic", plan.arithmetic()},
               {"dialect", std::string(to_name(plan.spec.accumulation.dialect))},
               {"micro_batch", plan.order.micro_batch},
               {"steps", plan.window.steps},
               {"world", plan.grid.world()},
               {"data_ranks", plan.grid.data},
               {"global_batch", plan.global_batch},
               {"tokens_per_update", plan.tokens_per_update},
               {"batches_per_epoch", plan.window.batches_per_epoch},
               {"full_windows_per_epoch", plan.full_windows_per_epoch},
               {"tail_micro_steps", plan.tail_micro_steps},
               {"updates", plan.totals.updates},
               {"micro_steps", plan.totals.micro_steps},
               {"epochs_started", plan.totals.epochs_started},
               {"dropped_batches", plan.totals.dropped_batches},
               {"left_over_micro_steps", plan.totals.left_over_micro_steps},
               {"schedule_ticks", plan.totals.schedule_ticks},
               {"schedule_total", plan.curve.total},
               {"schedule_counts", std::string(to_name(plan.curve.clock))},
               {"warmup",
                {{"positions", number_json(plan.curve.warmup)},
                 {"updates", plan.warmup_updates},
                 {"micro_steps", plan.warmup_micro_steps},
                 {"samples", plan.warmup_samples}}},
               {"samples", plan.data.samples},
               {"validation_samples", plan.data.validation_samples},
               {"tokens_per_sample", plan.data.tokens_per_sample},
               {"data_fingerprint", plan.data.fingerprint},
               {"parameters", plan.parameter_count},
               {"parameter_groups", groups_json(plan)},
               {"memory_bytes_per_rank",
                {{"parameters", memory.parameters},
                 {"gradients", memory.gradients},
                 {"optimizer", memory.optimizer},
                 {"activations", memory.activations},
                 {"buffers", memory.buffers},
                 {"process", memory.process},
                 {"total", memory.total()}}},
               {"gradient_buckets", plan.gradient_buckets},
               {"wire_bytes_per_update", plan.wire_bytes_per_update},
               {"bubble", plan.bubble},
               {"stages", stages_json(plan)},
               {"backend", std::string(to_name(plan.backend))},
               {"device", std::string(to_name(plan.spec.launch.device))},
               {"threads_per_rank", plan.threads_per_rank},
               {"knobs", knobs_json(plan.knobs)}};
  if (!plan.weights_fingerprint.empty()) json["weights_fingerprint"] = plan.weights_fingerprint;
  if (!cost_is_known(plan.spec))
    for (const char* key : {"parameters", "parameter_groups", "memory_bytes_per_rank", "gradient_buckets",
                            "wire_bytes_per_update", "stages"})
      json[key] = nullptr;
  return json;
}

}  // namespace accrue
