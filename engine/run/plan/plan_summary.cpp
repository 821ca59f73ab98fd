// SPDX-License-Identifier: Apache-2.0
#include "plan_summary.h"

#include <nlohmann/json.hpp>

#include "accrue/run/choice_names.h"

namespace accrue {

namespace {

using Json = nlohmann::ordered_json;

template <typename E>
void add_choice(Json& json, const char* key, E value) {
  json[key] = std::string(to_name(value));
}

Json knobs_json(const AccumulationKnobs& knobs) {
  Json json;
  add_choice(json, "group_length", knobs.group_length);
  add_choice(json, "tail", knobs.tail);
  add_choice(json, "run_tail", knobs.run_tail);
  add_choice(json, "counter_reset", knobs.counter_reset);
  add_choice(json, "normalizer", knobs.normalizer);
  add_choice(json, "normalizer_scope", knobs.normalizer_scope);
  add_choice(json, "normalize_when", knobs.normalize_when);
  add_choice(json, "boundary_compare", knobs.boundary_compare);
  add_choice(json, "reduce_when", knobs.reduce_when);
  add_choice(json, "reduce_op", knobs.reduce_op);
  add_choice(json, "reduce_mechanism", knobs.reduce_mechanism);
  add_choice(json, "no_sync_cover", knobs.no_sync_cover);
  add_choice(json, "clear_gradients", knobs.clear_gradients);
  add_choice(json, "clip_stage", knobs.clip_stage);
  add_choice(json, "clip_kind", knobs.clip_kind);
  add_choice(json, "overflow", knobs.overflow);
  add_choice(json, "schedule_clock", knobs.schedule_clock);
  add_choice(json, "uneven_ranks", knobs.uneven_ranks);
  add_choice(json, "checkpoint_scope", knobs.checkpoint_scope);
  add_choice(json, "accumulation_dtype", knobs.accumulation_dtype);
  add_choice(json, "reported_loss", knobs.reported_loss);
  add_choice(json, "validation", knobs.validation);
  return json;
}

}  // namespace

Json plan_summary(const RunPlan& plan) {
  const MemoryEstimate& memory = plan.memory;
  return {{"arithmetic", plan.arithmetic()},
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
          {"warmup",
           {{"positions", plan.curve.warmup},
            {"updates", plan.warmup_updates},
            {"micro_steps", plan.warmup_micro_steps},
            {"samples", plan.warmup_samples}}},
          {"samples", plan.data.samples},
          {"validation_samples", plan.data.validation_samples},
          {"tokens_per_sample", plan.data.tokens_per_sample},
          {"data_fingerprint", plan.data.fingerprint},
          {"parameters", plan.parameter_count},
          {"memory_bytes_per_rank",
           {{"parameters", memory.parameters},
            {"gradients", memory.gradients},
            {"optimizer", memory.optimizer},
            {"activations", memory.activations},
            {"process", memory.process},
            {"total", memory.total()}}},
          {"gradient_buckets", plan.gradient_buckets},
          {"wire_bytes_per_update", plan.wire_bytes_per_update},
          {"backend", std::string(to_name(plan.backend))},
          {"device", std::string(to_name(plan.spec.launch.device))},
          {"threads_per_rank", plan.threads_per_rank},
          {"knobs", knobs_json(plan.knobs)}};
}

}  // namespace accrue
