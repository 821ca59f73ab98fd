// SPDX-License-Identifier: Apache-2.0
// Rows of [accumulation]: the three that every run sets, and the names that a dialect has of its own. The knobs stand
// between them in a file; spec_fields_knobs.cpp has their rows.
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

bool is_accelerate(const RunSpec& spec) {
  return spec.accumulation.dialect == Dialect::accelerate;
}
bool is_mmengine(const RunSpec& spec) {
  return spec.accumulation.dialect == Dialect::mmengine;
}

}  // namespace

void add_accumulation_fields(FieldList& list) {
  list.add("accumulation.dialect", "Dialect", ACCRUE_MEMBER(accumulation.dialect),
           "Whose rules count the micro-steps: Accrue's own, or those of llm-pytorch (llm), Colossal-AI, Accelerate or "
           "MMEngine. A dialect is a preset of all knobs below; a knob that is set overrides it.")
      .notes(dialect_notes)
      .alias("llm-pytorch", "GradientAccumulationOptimizer")
      .alias("Colossal-AI", "GradAccumOptimizer")
      .alias("Colossal-AI", "accumulate_gradient")
      .alias("Accelerate", "GradientAccumulationPlugin")
      .alias("MMEngine", "OptimWrapper")
      .alias("MMEngine", "ColossalAIOptimWrapper");
  list.add("accumulation.steps", "Accumulation steps", ACCRUE_MEMBER(accumulation.steps),
           "N: micro-steps whose gradients are summed for one update. The update sees steps x micro-batch x ranks "
           "samples and needs the memory of one micro-batch.")
      .unit("micro-steps")
      .range(1, max_window_steps)
      .alias("Accelerate", "gradient_accumulation_steps")
      .alias("transformers", "gradient_accumulation_steps")
      .alias("DeepSpeed", "gradient_accumulation_steps")
      .alias("Accelerate", "num_steps")
      .alias("llm-pytorch", "accumulation_steps")
      .alias("Lightning", "accumulate_grad_batches")
      .alias("Colossal-AI", "accumulate_size")
      .alias("Colossal-AI", "gradient_accumulation")
      .alias("MMEngine", "accumulative_counts")
      .alias("Megatron-LM", "num_micro_batches")
      .alias("fairseq", "update_freq")
      .alias("Caffe", "iter_size")
      .alias("DIGITS", "batch_accumulation");
  list.add("accumulation.micro_batch", "Micro-batch", ACCRUE_MEMBER(accumulation.micro_batch),
           "Samples that one rank takes in one micro-step. Memory for activations grows with it; the result of an "
           "update does not depend on how its samples are cut.")
      .unit("samples")
      .range(1, max_window_steps)
      .alias("Megatron-LM", "--micro-batch-size")
      .alias("DeepSpeed", "train_micro_batch_size_per_gpu")
      .alias("transformers", "per_device_train_batch_size")
      .alias("PyTorch", "batch_size");
}

void add_dialect_fields(FieldList& list) {
  list.add("accumulation.sync_with_dataloader", "Update at the end of the data",
           ACCRUE_MEMBER(accumulation.sync_with_dataloader),
           "Accelerate only: the last batch of an epoch ends the window (true), or windows cross epochs (false).")
      .alias("Accelerate", "sync_with_dataloader")
      .when(is_accelerate)
      .advanced();
  list.add("accumulation.sync_each_batch", "Reduce in every micro-step", ACCRUE_MEMBER(accumulation.sync_each_batch),
           "Accelerate only: exchange gradients in every micro-step. Same result, N times the traffic.")
      .alias("Accelerate", "sync_each_batch")
      .when(is_accelerate)
      .advanced();
  list.add("accumulation.split_batches", "Split batches", ACCRUE_MEMBER(accumulation.split_batches),
           "Accelerate only: one batch of micro_batch x ranks samples is cut in equal parts, and the schedule ticks "
           "once an update instead of once a rank. micro_batch stays the number per rank.")
      .alias("Accelerate", "split_batches")
      .when(is_accelerate)
      .advanced();
  list.add("accumulation.step_scheduler_with_optimizer", "Schedule follows the optimizer",
           ACCRUE_MEMBER(accumulation.step_scheduler_with_optimizer),
           "Accelerate only: false ticks the schedule at every call of it, once a micro-step, whatever the window "
           "does.")
      .alias("Accelerate", "step_scheduler_with_optimizer")
      .when(is_accelerate)
      .advanced();
  list.add("accumulation.adjust_scheduler", "Adjust the schedule", ACCRUE_MEMBER(accumulation.adjust_scheduler),
           "Accelerate only: taken so that its configurations can be carried over; it has no effect there and has none "
           "here.")
      .alias("Accelerate", "adjust_scheduler")
      .when(is_accelerate)
      .advanced();
  list.add("accumulation.max_iters", "Micro-steps of the run", ACCRUE_MEMBER(accumulation.max_iters),
           "MMEngine only: micro-steps of the whole run, by which its last window is known. Left out: what the run's "
           "own limit comes to.")
      .unit("micro-steps")
      .range(1, 1e9)
      .alias("MMEngine", "max_iters")
      .alias("MMEngine", "max_counts")
      .when(is_mmengine)
      .advanced();
  list.add("accumulation.replay", "Upstream defects", ACCRUE_MEMBER(accumulation.replay),
           "Reproduces defects of the dialect's original, so that a run of it can be compared. scheduler_state (llm): "
           "after a resume the rate stays where it was. clip_partial_sums (colossalai): clips in every micro-step, and "
           "clip_norm 0 zeroes. drain_early (colossalai): an epoch loses its last kept batch. adjust_scheduler "
           "(accelerate): the documented effect of that key. zero_before_backward (accelerate): zeroes at the boundary "
           "before its backward. restart_count (mmengine): a resume counts from 0. narrow_no_sync (llm, colossalai, "
           "mmengine): every micro-step reduces.")
      .each_of(choice_names<Replay>())
      .when([](const RunSpec& spec) { return spec.accumulation.dialect != Dialect::accrue; })
      .advanced();
}

}  // namespace accrue::field_detail
