// SPDX-License-Identifier: Apache-2.0
// Rows of the knobs K1 to K17 in [accumulation]. Each is optional; the default is the dialect's preset.
#include "spec_field_list.h"

namespace accrue::field_detail {

namespace {

bool has_global_batch(const RunSpec& spec) {
  return spec.accumulation.knobs.group_length == GroupLength::global_batch;
}

// Meaning of each choice and the systems that use it, for a card that compares them.
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

// K1 to K7: length, end and divisor of a window.
void add_window_knobs(FieldList& list) {
  list.advanced(
      ACCRUE_KNOB_FIELD(group_length), "Window length",
      "How many micro-steps a window has. fixed: steps. by_update, by_epoch: by length_schedule. global_batch: as many "
      "as global_batch samples need. memory_search: micro-batches are made smaller until a rank fits into memory, and "
      "windows longer, so that an update sees exactly the samples that steps x micro_batch ask for.");
  list.advanced(ACCRUE_KNOB_FIELD(length_schedule), "Length schedule",
                "With by_update and by_epoch: from this update or epoch on (counted from 0), windows have that many "
                "micro-steps. Before the first row, steps holds.")
      .rows("[from, steps]")
      .when(follows_schedule)
      .elsewhere("Lightning: GradientAccumulationScheduler");
  list.advanced(ACCRUE_KNOB_FIELD(global_batch), "Global batch",
                "Samples of an update over all ranks; micro_batch x ranks must divide it.")
      .range(1, 1e9, "samples")
      .when(has_global_batch)
      .elsewhere("Megatron-LM: --global-batch-size; DeepSpeed: train_batch_size");
  list.advanced(ACCRUE_KNOB_FIELD(batch_rounding), "Where it does not divide",
                "What happens where micro_batch x ranks does not divide global_batch. error: refused. round: the "
                "nearest multiple. fill: the next multiple above. decrease: the next one below, which must be one "
                "micro-step at least.")
      .when(has_global_batch)
      .elsewhere("Megatron-LM: --decrease-batch-size-if-needed");
  list.advanced(ACCRUE_KNOB_FIELD(memory_limit), "Memory of a rank",
                "With memory_search: what a rank may take. Left out: four fifths of the host's memory, shared among "
                "its ranks.")
      .above(0, 1e9, "MiB")
      .when([](const RunSpec& spec) { return spec.accumulation.knobs.group_length == GroupLength::memory_search; })
      .elsewhere("Accelerate: find_executable_batch_size");
  list.add(ACCRUE_KNOB_FIELD(tail), "Epoch tail",
           "What becomes of the batches left at the end of an epoch. flush: an update with what came. carry: the "
           "window goes on in the next epoch. drop_stop: they are not fetched. drop_drain: they are fetched and "
           "dropped. pad_repeat: the window is filled from the start of the epoch.")
      .notes(tail_notes)
      .elsewhere("Accelerate: sync_with_dataloader; Colossal-AI: GradAccumDataloader; PyTorch: drop_last");
  list.advanced(ACCRUE_KNOB_FIELD(run_tail), "Run tail",
                "What becomes of a window that is open when the run ends. flush: an update with what came. "
                "discard: its gradients are never used.")
      .elsewhere("MMEngine: max_counts; Accelerate: sync_with_dataloader");
  list.advanced(ACCRUE_KNOB_FIELD(counter_reset), "Counter reset",
                "When the position in the window goes back to zero apart from a full window.")
      .elsewhere("MMEngine: initialize_count_status, init_counts");
  list.add(ACCRUE_KNOB_FIELD(normalizer), "Normalizer",
           "What the window's loss is divided by. none. steps: N, also in a short tail. true_size: the micro-steps "
           "that the window has. run_remainder: N, and the remainder in the run's last window. samples or tokens: as "
           "many as the window holds, which makes an update equal that of one large batch.")
      .notes(normalizer_notes)
      .elsewhere(
          "transformers: num_items_in_batch, average_tokens_across_devices; MMEngine: scale_loss; Colossal-AI: "
          "backward_by_grad; Megatron-LM: --calculate-per-token-loss");
  list.advanced(ACCRUE_KNOB_FIELD(normalizer_scope), "Normalizer scope",
                "Over which ranks samples or tokens are counted: this rank alone, or all data-parallel ranks.")
      .elsewhere("transformers: average_tokens_across_devices");
  list.advanced(ACCRUE_KNOB_FIELD(normalize_when), "Normalize when",
                "When it divides. eager: each micro-step's loss. deferred: the sum, once, before the update.");
  list.advanced(ACCRUE_KNOB_FIELD(boundary_compare), "Boundary test",
                "How the end of a window is recognised: the counter equals N, is at least N, is a multiple of N, "
                "or the plan says so.")
      .elsewhere("llm-pytorch: accumulation_boundary; MMEngine: should_update; Accelerate: sync_gradients");
}

// K8 to K12: actions around a boundary.
void add_boundary_knobs(FieldList& list) {
  list.add(ACCRUE_KNOB_FIELD(reduce_when), "Reduce when",
           "When ranks exchange gradients: once a window, in every micro-step (same result, N times the bytes), or "
           "never.")
      .notes(reduce_notes)
      .elsewhere("Accelerate: sync_each_batch, no_sync; MMEngine: should_sync; Accelerate: trigger_sync_in_backward");
  list.advanced(ACCRUE_KNOB_FIELD(reduce_op), "Reduce by",
                "Whether the exchange takes the mean or the sum over ranks.");
  list.advanced(ACCRUE_KNOB_FIELD(reduce_mechanism), "Reduce through",
                "How ranks exchange gradients. reducer: each bucket as soon as backward has filled it, as PyTorch's "
                "DDP does, which lets a network work during backward. post_backward: bucket by bucket after the last "
                "backward, for ranks that share one machine's cores. handlers: after it, all of a type in one piece, "
                "as Colossal-AI's list of gradient handlers does. The numbers are the same.")
      .elsewhere(
          "PyTorch: DistributedDataParallel; Colossal-AI: gradient_handlers, gradient_handler, "
          "GradAccumGradientHandler");
  list.advanced(ACCRUE_KNOB_FIELD(no_sync_cover), "No-sync covers",
                "The part of a micro-step that the no-sync scope covers. A scope around the backward alone comes "
                "too late, as with PyTorch's DDP: every micro-step reduces. It changes the traffic, never the result. "
                "reduce_when takes precedence.")
      .elsewhere("PyTorch: no_sync; MMEngine: optim_context; Accelerate: accumulate");
  list.advanced(ACCRUE_KNOB_FIELD(clip_stage), "Clip when",
                "Where gradients are clipped: in the update, in every micro-step, or nowhere.")
      .elsewhere("Accelerate: clip_grad_norm_; Colossal-AI: clip_grad_norm; MMEngine: clip_grad");
  list.advanced(ACCRUE_KNOB_FIELD(clip_kind), "Clip by",
                "How gradients are clipped. norm: the whole gradient is shortened. value: each element is cut off.")
      .elsewhere("Lightning: gradient_clip_algorithm; Accelerate: clip_grad_value_");
  list.advanced(ACCRUE_KNOB_FIELD(overflow), "Overflow",
                "A non-finite gradient discards the window; the schedule then holds or advances, or the run ends "
                "with an error.")
      .elsewhere("Accelerate: step_was_skipped, optimizer_step_was_skipped");
}

// K13 to K17: clock, ranks, saved state and reports.
void add_bookkeeping_knobs(FieldList& list) {
  list.add(ACCRUE_KNOB_FIELD(schedule_clock), "Schedule clock",
           "What moves the learning-rate schedule by one: an update; an update, as many times as there are ranks; "
           "a micro-step; an epoch; every Nth call; or the loop's own call, once a micro-step (external).")
      .notes(clock_notes)
      .elsewhere(
          "Lightning: interval; MMEngine: by_epoch; Accelerate: step_scheduler_with_optimizer, step_with_optimizer, "
          "AcceleratedScheduler; llm-pytorch: GradientAccumulationLRScheduler; Colossal-AI: "
          "GradAccumLrSchedulerByStep; Accelerate: adjust_scheduler");
  list.advanced(ACCRUE_KNOB_FIELD(uneven_ranks), "Uneven ranks",
                "What happens where the samples do not divide among the ranks. repeat: from the start of the "
                "data. empty_micro_steps: a rank without samples adds nothing. drop: the surplus is not trained on.")
      .elsewhere("Accelerate: even_batches; PyTorch: drop_last; Accelerate: join_uneven_inputs");
  list.advanced(ACCRUE_KNOB_FIELD(checkpoint_scope), "Checkpoint scope",
                "Where a checkpoint may be taken and what of an open window it holds.")
      .elsewhere("Accelerate: save_state");
  list.advanced(ACCRUE_KNOB_FIELD(accumulation_dtype), "Accumulate in",
                "Number type of the gradient sum: the parameter's, at least float32, or float32 with a "
                "compensation term (twice the memory).")
      .elsewhere("Megatron-LM: --accumulate-allreduce-grads-in-fp32; DeepSpeed: grad_accum_dtype");
  list.advanced(ACCRUE_KNOB_FIELD(reported_loss), "Reported loss",
                "Which loss an update reports. by_denominator: the value whose gradient the update used. "
                "mean_of_micro: mean of the micro-steps' losses. last_micro: that of the last one. Update events "
                "report the first unless this is set; micro_steps events report the single losses.");
}

}  // namespace

void add_knob_fields(FieldList& list) {
  add_window_knobs(list);
  add_boundary_knobs(list);
  add_bookkeeping_knobs(list);
  // The default of a knob is the dialect's: the same field of a spec that spells every knob out.
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
