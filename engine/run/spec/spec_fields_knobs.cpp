// SPDX-License-Identifier: Apache-2.0
// Rows of the knobs K1 to K17 in [accumulation]. Each is optional: left out, the dialect's preset holds.
#include "spec_field_list.h"

namespace accrue::field_detail {

namespace {

bool has_global_batch(const RunSpec& spec) {
  return spec.accumulation.knobs.group_length == GroupLength::global_batch;
}

// What each choice means and who does it, where a card shows them side by side.
constexpr std::string_view tail_notes[] = {
    "carry over: llm-pytorch, MMEngine, Accelerate with sync_with_dataloader off",
    "drop, not fetched: Colossal-AI's loader",
    "drop, but fetch: Colossal-AI over loaders of other makes",
    "step with what came: Accelerate, transformers' Trainer, Accrue",
    "fill up from the epoch's first batches",
};
constexpr std::string_view normalizer_notes[] = {
    "do not divide: Colossal-AI's backward_by_grad",
    "divide by N, a short tail too: llm-pytorch, Colossal-AI, Accelerate",
    "divide by what came: transformers' Trainer",
    "divide by N, the run's last window by what came: MMEngine",
    "divide by the samples of the window",
    "divide by the items of the window: Accrue, transformers' num_items_in_batch",
};
constexpr std::string_view clock_notes[] = {
    "each update: Accrue, transformers' Trainer, Accelerate with split_batches",
    "each update, once per rank: Accelerate",
    "each micro-step: MMEngine by iteration",
    "each epoch: MMEngine by_epoch",
    "every Nth call: llm-pytorch, Colossal-AI",
    "every call: Accelerate with step_scheduler_with_optimizer off",
};
constexpr std::string_view reduce_notes[] = {
    "once a window: what all five intend",
    "in every micro-step: Accelerate with sync_each_batch",
    "never: each rank trains a model of its own",
};

bool follows_schedule(const RunSpec& spec) {
  const auto& length = spec.accumulation.knobs.group_length;
  return length && has_length_schedule(*length);
}

// K1 to K7: how long a window is, what ends it, what divides it.
void add_window_knobs(FieldList& list) {
  list.add(
          "accumulation.group_length", "Window length", ACCRUE_MEMBER(accumulation.knobs.group_length),
          "K1. fixed: steps. by_update, by_epoch: by length_schedule. global_batch: as many micro-steps as "
          "global_batch samples need. memory_search: micro-batches are made smaller until a rank fits into memory, and "
          "windows longer, so that an update sees exactly the samples that steps x micro_batch ask for.")
      .advanced();
  list.add("accumulation.length_schedule", "Length schedule", ACCRUE_MEMBER(accumulation.knobs.length_schedule),
           "K1 by_update and by_epoch: from this update or epoch on (counted from 0), windows have that many "
           "micro-steps. Before the first row, steps holds.")
      .rows("[from, steps]")
      .alias("Lightning", "GradientAccumulationScheduler")
      .when(follows_schedule)
      .advanced();
  list.add("accumulation.global_batch", "Global batch", ACCRUE_MEMBER(accumulation.knobs.global_batch),
           "K1 global_batch: samples of an update over all ranks; micro_batch x ranks must divide it.")
      .unit("samples")
      .range(1, 1e9)
      .alias("Megatron-LM", "--global-batch-size")
      .alias("DeepSpeed", "train_batch_size")
      .when(has_global_batch)
      .advanced();
  list.add("accumulation.batch_rounding", "Where it does not divide", ACCRUE_MEMBER(accumulation.knobs.batch_rounding),
           "K1 global_batch: what happens where micro_batch x ranks does not divide it. error: refused. round: the "
           "nearest multiple. fill: the next multiple above.")
      .when(has_global_batch)
      .advanced();
  list.add(
          "accumulation.memory_limit", "Memory of a rank", ACCRUE_MEMBER(accumulation.knobs.memory_limit),
          "K1 memory_search: what a rank may take. Left out: four fifths of the host's memory, shared among its ranks.")
      .unit("MiB")
      .above(0, 1e9)
      .alias("Accelerate", "find_executable_batch_size")
      .when([](const RunSpec& spec) { return spec.accumulation.knobs.group_length == GroupLength::memory_search; })
      .advanced();
  list.add("accumulation.tail", "Epoch tail", ACCRUE_MEMBER(accumulation.knobs.tail),
           "K2. What becomes of the batches left at the end of an epoch. flush: an update with what came. carry: the "
           "window goes on in the next epoch. drop_stop: they are not fetched. drop_drain: they are fetched and "
           "dropped. pad_repeat: the window is filled from the start of the epoch.")
      .notes(tail_notes)
      .alias("Accelerate", "sync_with_dataloader")
      .alias("Colossal-AI", "GradAccumDataloader")
      .alias("PyTorch", "drop_last");
  list.add("accumulation.run_tail", "Run tail", ACCRUE_MEMBER(accumulation.knobs.run_tail),
           "K3. What becomes of a window that is open when the run ends. flush: an update with what came. discard: its "
           "gradients are never used.")
      .alias("MMEngine", "max_counts")
      .alias("Accelerate", "sync_with_dataloader")
      .advanced();
  list.add("accumulation.counter_reset", "Counter reset", ACCRUE_MEMBER(accumulation.knobs.counter_reset),
           "K4. When the position in the window goes back to zero apart from a full window.")
      .alias("MMEngine", "initialize_count_status")
      .alias("MMEngine", "init_counts")
      .advanced();
  list.add("accumulation.normalizer", "Normalizer", ACCRUE_MEMBER(accumulation.knobs.normalizer),
           "K5. What the window's loss is divided by. none. steps: N, also in a short tail. true_size: the "
           "micro-steps that the window has. run_remainder: N, and the remainder in the run's last window. samples or "
           "tokens: as many as the window holds, which makes an update equal that of one large batch.")
      .notes(normalizer_notes)
      .alias("transformers", "num_items_in_batch")
      .alias("transformers", "average_tokens_across_devices")
      .alias("MMEngine", "scale_loss")
      .alias("Colossal-AI", "backward_by_grad")
      .alias("Megatron-LM", "--calculate-per-token-loss");
  list.add("accumulation.normalizer_scope", "Normalizer scope", ACCRUE_MEMBER(accumulation.knobs.normalizer_scope),
           "K5. Over which ranks samples or tokens are counted: this rank alone, or all data-parallel ranks.")
      .alias("transformers", "average_tokens_across_devices")
      .advanced();
  list.add("accumulation.normalize_when", "Normalize when", ACCRUE_MEMBER(accumulation.knobs.normalize_when),
           "K6. eager: each micro-step's loss is divided. deferred: sums are kept and divided once, before the update.")
      .advanced();
  list.add("accumulation.boundary_compare", "Boundary test", ACCRUE_MEMBER(accumulation.knobs.boundary_compare),
           "K7. How the end of a window is recognised: the counter equals N, is at least N, is a multiple of N, or the "
           "plan says so.")
      .alias("llm-pytorch", "accumulation_boundary")
      .alias("MMEngine", "should_update")
      .alias("Accelerate", "sync_gradients")
      .advanced();
}

// K8 to K12: what happens around a boundary.
void add_boundary_knobs(FieldList& list) {
  list.add("accumulation.reduce_when", "Reduce when", ACCRUE_MEMBER(accumulation.knobs.reduce_when),
           "K8. When ranks exchange gradients: once a window, in every micro-step (same result, N times the bytes), or "
           "never.")
      .notes(reduce_notes)
      .alias("Accelerate", "sync_each_batch")
      .alias("Accelerate", "no_sync")
      .alias("MMEngine", "should_sync")
      .alias("Accelerate", "trigger_sync_in_backward");
  list.add("accumulation.reduce_op", "Reduce by", ACCRUE_MEMBER(accumulation.knobs.reduce_op),
           "K8. Whether the exchange takes the mean or the sum over ranks.")
      .advanced();
  list.add(
          "accumulation.reduce_mechanism", "Reduce through", ACCRUE_MEMBER(accumulation.knobs.reduce_mechanism),
          "K8. reducer: each bucket as soon as backward has filled it, as PyTorch's DDP does, which lets a network "
          "work during backward. post_backward: bucket by bucket after the last backward, for ranks that share one "
          "machine's cores. handlers: after it, all of a type in one piece, as Colossal-AI's list of gradient handlers "
          "does. The numbers are the same.")
      .alias("PyTorch", "DistributedDataParallel")
      .alias("Colossal-AI", "gradient_handlers")
      .alias("Colossal-AI", "gradient_handler")
      .alias("Colossal-AI", "GradAccumGradientHandler")
      .advanced();
  list.add("accumulation.no_sync_cover", "No-sync covers", ACCRUE_MEMBER(accumulation.knobs.no_sync_cover),
           "K9. The part of a micro-step that the no-sync scope covers. A scope around the backward alone comes too "
           "late, as "
           "with PyTorch's DDP: every micro-step reduces. It changes the traffic, never the result. reduce_when takes "
           "precedence.")
      .alias("PyTorch", "no_sync")
      .alias("MMEngine", "optim_context")
      .alias("Accelerate", "accumulate")
      .advanced();
  list.add("accumulation.clip_stage", "Clip when", ACCRUE_MEMBER(accumulation.knobs.clip_stage),
           "K11. Where gradients are clipped: in the update, in every micro-step, or nowhere.")
      .alias("Accelerate", "clip_grad_norm_")
      .alias("Colossal-AI", "clip_grad_norm")
      .alias("MMEngine", "clip_grad")
      .advanced();
  list.add("accumulation.clip_kind", "Clip by", ACCRUE_MEMBER(accumulation.knobs.clip_kind),
           "K11. norm: the whole gradient is shortened. value: each element is cut off.")
      .alias("Lightning", "gradient_clip_algorithm")
      .alias("Accelerate", "clip_grad_value_")
      .advanced();
  list.add("accumulation.overflow", "Overflow", ACCRUE_MEMBER(accumulation.knobs.overflow),
           "K12. A non-finite gradient discards the window; the schedule then holds or advances, or the run ends with "
           "an error.")
      .alias("Accelerate", "step_was_skipped")
      .alias("Accelerate", "optimizer_step_was_skipped")
      .advanced();
}

// K13 to K17: clock, ranks, what is kept and what is reported.
void add_bookkeeping_knobs(FieldList& list) {
  list.add("accumulation.schedule_clock", "Schedule clock", ACCRUE_MEMBER(accumulation.knobs.schedule_clock),
           "K13. What moves the learning-rate schedule by one: an update; an update, as many times as there are ranks; "
           "a micro-step; an epoch; every Nth call; or the loop's own call, once a micro-step "
           "(external).")
      .notes(clock_notes)
      .alias("Lightning", "interval")
      .alias("MMEngine", "by_epoch")
      .alias("Accelerate", "step_scheduler_with_optimizer")
      .alias("Accelerate", "step_with_optimizer")
      .alias("Accelerate", "AcceleratedScheduler")
      .alias("llm-pytorch", "GradientAccumulationLRScheduler")
      .alias("Colossal-AI", "GradAccumLrSchedulerByStep")
      .alias("Accelerate", "adjust_scheduler");
  list.add("accumulation.uneven_ranks", "Uneven ranks", ACCRUE_MEMBER(accumulation.knobs.uneven_ranks),
           "K14. What happens where the samples do not divide among the ranks. repeat: from the start of the data. "
           "empty_micro_steps: a rank without samples adds nothing. drop: the surplus is not trained on.")
      .alias("Accelerate", "even_batches")
      .alias("PyTorch", "drop_last")
      .alias("Accelerate", "join_uneven_inputs")
      .advanced();
  list.add("accumulation.checkpoint_scope", "Checkpoint scope", ACCRUE_MEMBER(accumulation.knobs.checkpoint_scope),
           "K15. Where a checkpoint may be taken and what of an open window it holds.")
      .alias("Accelerate", "save_state")
      .advanced();
  list.add("accumulation.accumulation_dtype", "Accumulate in", ACCRUE_MEMBER(accumulation.knobs.accumulation_dtype),
           "K16. Number type of the gradient sum: the parameter's, at least float32, or float32 with a compensation "
           "term (twice the memory).")
      .alias("Megatron-LM", "--accumulate-allreduce-grads-in-fp32")
      .alias("DeepSpeed", "grad_accum_dtype")
      .advanced();
  list.add("accumulation.reported_loss", "Reported loss", ACCRUE_MEMBER(accumulation.knobs.reported_loss),
           "K17. by_denominator: the value whose gradient the update used. mean_of_micro: mean of the micro-steps' "
           "losses. last_micro: that of the last one. Update events report the first unless this is set; "
           "micro_steps events report the single losses.")
      .advanced();
}

}  // namespace

void add_knob_fields(FieldList& list) {
  add_window_knobs(list);
  add_boundary_knobs(list);
  add_bookkeeping_knobs(list);
  // Left out, a knob is the dialect's: the same field read from a spec that spells every knob out.
  for (SpecField& field : list.fields) {
    if (field.section() != "accumulation" || !field.optional || field.key == "accumulation.global_batch") continue;
    field.derived = [get = field.get](const RunSpec& spec) {
      RunSpec spelled = spec;
      spelled.accumulation.knobs = explicit_knobs(resolve_knobs(spec.accumulation));
      return get(spelled);
    };
  }
}

}  // namespace accrue::field_detail
