// SPDX-License-Identifier: Apache-2.0
// Rows of [accumulation]: the three that every run sets, and the names of single dialects. In a file the knobs are
// between them; spec_fields_knobs.cpp has their rows.
#include "spec_field_list.h"

namespace accrue::field_detail {

namespace {

constexpr std::string_view dialect_notes[] = {
    "Accrue's own: every batch counts, the divisor is what came",
    "llm-pytorch: windows cross epochs, the run's last is lost",
    "Colossal-AI: what fills no window is dropped",
    "Hugging Face Accelerate: the end of the data ends a window",
    "MMEngine: windows cross epochs, the run's last is used",
};

}  // namespace

void add_accumulation_fields(FieldList& list) {
  list.add(ACCRUE_FIELD(accumulation.dialect), "Dialect",
           "Whose rules count the micro-steps: Accrue's own, or those of llm-pytorch (llm), Colossal-AI, Accelerate or "
           "MMEngine. A dialect is a preset of all knobs below; a knob that is set overrides it.")
      .notes(dialect_notes)
      .elsewhere(
          "llm-pytorch: GradientAccumulationOptimizer; Colossal-AI: GradAccumOptimizer, accumulate_gradient; "
          "Accelerate: GradientAccumulationPlugin; MMEngine: OptimWrapper, ColossalAIOptimWrapper");
  list.add(ACCRUE_FIELD(accumulation.steps), "Accumulation steps",
           "N: micro-steps whose gradients are summed for one update. The update sees steps x micro-batch x replicas "
           "samples and needs the memory of one micro-batch.")
      .range(1, max_window_steps, "micro-steps")
      .elsewhere(
          "Accelerate: gradient_accumulation_steps; transformers: gradient_accumulation_steps; DeepSpeed: "
          "gradient_accumulation_steps; Accelerate: num_steps; llm-pytorch: accumulation_steps; Lightning: "
          "accumulate_grad_batches; Colossal-AI: accumulate_size, gradient_accumulation; MMEngine: "
          "accumulative_counts; Megatron-LM: num_micro_batches; fairseq: update_freq; Caffe: iter_size; DIGITS: "
          "batch_accumulation");
  list.add(ACCRUE_FIELD(accumulation.micro_batch), "Micro-batch",
           "Samples that one rank takes in one micro-step. Memory for activations grows with it; the result of an "
           "update does not depend on how its samples are split.")
      .range(1, max_window_steps, "samples")
      .elsewhere(
          "Megatron-LM: --micro-batch-size; DeepSpeed: train_micro_batch_size_per_gpu; transformers: "
          "per_device_train_batch_size; PyTorch: batch_size; Lightning: batch_size; Colossal-AI: microbatch_size");
  list.advanced(ACCRUE_FIELD(accumulation.rampup), "Ramp-up",
                "[first, increment, samples]: an update starts with `first` samples over all ranks and grows by "
                "`increment` in equal steps until, after `samples` samples, it has its full size. The micro-steps of a "
                "window follow from it.")
      .range(1, 1e13, "samples")
      .elsewhere("Megatron-LM: --rampup-batch-size");
}

void add_dialect_fields(FieldList& list) {
  list.advanced(ACCRUE_FIELD(accumulation.sync_with_dataloader), "Update at the end of the data",
                "Accelerate only: the last batch of an epoch ends the window (true), or windows cross epochs (false).")
      .of(Dialect::accelerate)
      .elsewhere("Accelerate: sync_with_dataloader");
  list.advanced(ACCRUE_FIELD(accumulation.sync_each_batch), "Reduce in every micro-step",
                "Accelerate only: exchange gradients in every micro-step. Same result, N times the traffic.")
      .of(Dialect::accelerate)
      .elsewhere("Accelerate: sync_each_batch");
  list.advanced(ACCRUE_FIELD(accumulation.split_batches), "Split batches",
                "Accelerate only: one batch of micro_batch x ranks samples is split into equal parts, and the schedule "
                "ticks once an update instead of once a rank. micro_batch stays the number per rank.")
      .of(Dialect::accelerate)
      .elsewhere("Accelerate: split_batches");
  list.advanced(
          ACCRUE_FIELD(accumulation.step_scheduler_with_optimizer), "Schedule follows the optimizer",
          "Accelerate only: false ticks the schedule at every call of it, once a micro-step, whatever the window does.")
      .of(Dialect::accelerate)
      .elsewhere("Accelerate: step_scheduler_with_optimizer");
  list.advanced(ACCRUE_FIELD(accumulation.adjust_scheduler), "Adjust the schedule",
                "Accelerate only: accepted for compatibility with its configuration files; no effect there or here.")
      .of(Dialect::accelerate)
      .elsewhere("Accelerate: adjust_scheduler");
  list.advanced(ACCRUE_FIELD(accumulation.max_iters), "Micro-steps of the run",
                "MMEngine only: micro-steps of the whole run, by which its last window is known. Left out: what the "
                "run's own limit comes to.")
      .range(1, 1e9, "micro-steps")
      .of(Dialect::mmengine)
      .elsewhere("MMEngine: max_iters, max_counts");
  list.advanced(ACCRUE_FIELD(accumulation.replay), "Upstream defects",
                "Reproduces defects of the dialect's original, so that a run of it can be compared. scheduler_state "
                "(llm): after a resume the rate stays where it was. clip_partial_sums (colossalai): clips in every "
                "micro-step, and clip_norm 0 zeroes. drain_early (colossalai): an epoch loses its last kept batch. "
                "adjust_scheduler (accelerate): the documented effect of that key. zero_before_backward (accelerate): "
                "zeroes at the boundary before its backward. restart_count (mmengine): a resume counts from 0. "
                "narrow_no_sync (llm, colossalai, mmengine): every micro-step reduces.")
      .each_of(choice_names<Replay>())
      .when([](const RunSpec& spec) { return spec.accumulation.dialect != Dialect::accrue; });
}

}  // namespace accrue::field_detail
