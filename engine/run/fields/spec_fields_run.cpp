// SPDX-License-Identifier: Apache-2.0
// Rows of [parallel], [launch], [run], [evaluate] and [checkpoint].
#include "spec_field_list.h"

namespace accrue::field_detail {

namespace {

void add_run_limits(FieldList& list) {
  list.add(ACCRUE_FIELD(run.updates), "Updates",
           "The run ends after this many updates. Set exactly one of updates, epochs, samples and tokens; none of them "
           "means 200 updates.")
      .range(1, 1e8, "updates")
      .elsewhere("transformers: max_steps; Lightning: max_steps; Megatron-LM: --train-iters; MMEngine: max_iters");
  list.add(ACCRUE_FIELD(run.epochs), "Epochs", "The run ends after this many passes over the data; 0.5 is half a pass.")
      .above(0, 1e6, "epochs")
      .elsewhere("transformers: num_train_epochs; Lightning: max_epochs; MMEngine: max_epochs; Keras: epochs");
  list.add(ACCRUE_FIELD(run.samples), "Samples",
           "The run ends with the micro-step in which all ranks together have trained on this many samples.")
      .range(1, 1e13, "samples")
      .elsewhere("Megatron-LM: --train-samples");
  list.add(ACCRUE_FIELD(run.tokens), "Tokens",
           "The run ends with the micro-step in which all ranks together have trained on this many tokens.")
      .range(1, 1e16, "tokens");
}

bool may_stop(const RunSpec& spec) {
  return spec.run.stop_when != RunMeasure::none;
}

void add_early_end(FieldList& list) {
  list.add(ACCRUE_FIELD(run.stop_when), "Stop when",
           "The run ends before its planned end once this has stopped improving: run.patience evaluations in a row "
           "(evaluate.every_updates) were not better than the best before by more than run.least_improvement.")
      .elsewhere(
          "transformers: EarlyStoppingCallback; Lightning: EarlyStopping; MMEngine: EarlyStoppingHook; Keras: "
          "EarlyStopping");
  list.add(ACCRUE_FIELD(run.patience), "Patience",
           "After so many evaluations in a row without an improvement the run ends.")
      .range(1, 1e9, "evaluations")
      .when(may_stop)
      .elsewhere("transformers: early_stopping_patience; Lightning: patience; MMEngine: patience; Keras: patience");
  list.add(ACCRUE_FIELD(run.least_improvement), "Least improvement",
           "An evaluation improves if its loss is lower than the best before by more than this.")
      .range(0, 1e12)
      .when(may_stop)
      .elsewhere("transformers: early_stopping_threshold; Lightning: min_delta; MMEngine: min_delta; Keras: min_delta");
}

bool has_stages(const RunSpec& spec) {
  return spec.parallel.pipeline > 1;
}
bool recomputes_blocks(const RunSpec& spec) {
  return spec.parallel.recompute == RecomputeKind::full;
}

void add_parallel_fields(FieldList& list) {
  list.add(ACCRUE_FIELD(parallel.data), "Data-parallel ranks",
           "Data-parallel replicas of the model, which share the samples among them.")
      .range(1, 1024, "ranks")
      .elsewhere(
          "PyTorch: world_size; Accelerate: num_processes; torchrun: --nproc-per-node; Lightning: devices; DeepSpeed: "
          "num_gpus; Megatron-LM: data_parallel_size");
  list.advanced(ACCRUE_FIELD(parallel.tensor), "Tensor-parallel ranks",
                "Tensor-parallel ranks, which share each layer's matrices.")
      .range(1, 1024, "ranks")
      .elsewhere("Megatron-LM: --tensor-model-parallel-size; Accelerate: tp_degree");
  list.advanced(ACCRUE_FIELD(parallel.pipeline), "Pipeline stages",
                "Pipeline stages, each of which holds some of the layers.")
      .range(1, 1024, "ranks")
      .elsewhere("Megatron-LM: --pipeline-model-parallel-size; Accelerate: pp_degree");
  list.advanced(ACCRUE_FIELD(parallel.virtual_pipeline), "Chunks of a stage",
                "Chunks: groups of layers that each pipeline stage holds; a T5 has one.")
      .range(1, 1024)
      .elsewhere("Megatron-LM: --num-virtual-stages-per-pipeline-rank");
  list.advanced(ACCRUE_FIELD(parallel.pipeline_order), "Pipeline order",
                "1f1b: each stage takes a backward after each forward once the pipeline is full, and interleaves its "
                "chunks. all-forward: all forwards of a window before its first backward.")
      .when(has_stages)
      .elsewhere("Lightning: pipeline schedule; PyTorch: Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B");
  list.advanced(ACCRUE_FIELD(parallel.pipeline_group), "Pipeline group",
                "Micro-steps that pass one chunk before the next one's turn. Left out: as many as stages.")
      .range(1, 1e6, "micro-steps")
      .when([](const RunSpec& spec) { return spec.parallel.virtual_pipeline > 1; })
      .elsewhere("Megatron-LM: --microbatch-group-size-per-virtual-pipeline-stage");
  list.advanced(ACCRUE_FIELD(parallel.split_stage), "First decoder stage",
                "The pipeline stage, counted from 0, at which a T5's decoder begins; those before it hold the encoder. "
                "Left out: half of the stages.")
      .range(1, 1023)
      .when([](const RunSpec& spec) { return spec.model.kind == ModelKind::t5; })
      .elsewhere("Megatron-LM: --pipeline-model-parallel-split-rank, --encoder-pipeline-model-parallel-size");
  list.advanced(ACCRUE_FIELD(parallel.sequence), "Sequence-parallel",
                "Whether tensor-parallel ranks also share the positions of a sequence between the matrices.")
      .elsewhere("Megatron-LM: --sequence-parallel; Accelerate: sequence_parallelism");
  list.advanced(ACCRUE_FIELD(parallel.zero), "ZeRO stage",
                "0: each data-parallel rank holds the whole optimizer state. 1: each holds its share.")
      .range(0, 1)
      .elsewhere(
          "DeepSpeed: zero_optimization.stage; Megatron-LM: --use-distributed-optimizer; Accelerate: "
          "use_distributed_optimizer");
  list.advanced(ACCRUE_FIELD(parallel.overlap_grad_reduce), "Overlap reductions",
                "Gradients travel while the window's last backward still runs. Off: after it. Only the reducer "
                "(accumulation.reduce_mechanism) can do so; the two others reduce after the backward by definition.")
      .elsewhere("Megatron-LM: --overlap-grad-reduce; DeepSpeed: overlap_comm");
  list.advanced(ACCRUE_FIELD(parallel.overlap_param_gather), "Overlap gathering",
                "ZeRO: updated parameters travel until the next forward needs them, block by block. Off: before "
                "the next window.")
      .when([](const RunSpec& spec) { return spec.parallel.zero > 0; })
      .elsewhere("Megatron-LM: --overlap-param-gather");
  list.advanced(ACCRUE_FIELD(parallel.recompute), "Recomputation",
                "Which activations the backward recomputes instead of keeping them. selective: those of the attention "
                "between its matrices. full: those of whole blocks.")
      .elsewhere(
          "Megatron-LM: --recompute-granularity, recompute_activations; PyTorch: checkpoint; transformers: "
          "gradient_checkpointing");
  list.advanced(ACCRUE_FIELD(parallel.recompute_method), "Recomputed blocks",
                "uniform: every recompute_layers blocks keep one input. block: the first recompute_layers blocks of "
                "each stage, or of each of its chunks, are recomputed one by one, the others not.")
      .when(recomputes_blocks)
      .elsewhere("Megatron-LM: --recompute-method");
  list.advanced(ACCRUE_FIELD(parallel.recompute_layers), "Blocks at a time",
                "Blocks that keep one input together (uniform), or the first blocks of a stage that keep only their "
                "inputs (block).")
      .range(1, 1e6, "blocks")
      .when(recomputes_blocks)
      .elsewhere("Megatron-LM: --recompute-num-layers");
  list.advanced(ACCRUE_FIELD(parallel.distribute_saved_activations), "Share what is kept",
                "Each tensor-parallel rank keeps its share of a recomputed block's input and gathers it for the "
                "backward.")
      .when(recomputes_blocks)
      .elsewhere("Megatron-LM: --distribute-saved-activations");
  list.advanced(
          ACCRUE_FIELD(parallel.data_parallel_random_init), "Own dropout masks",
          "Whether each data-parallel rank draws dropout masks of its own. Otherwise all draw the same, on samples "
          "that differ. Weights start equal either way.")
      .when([](const RunSpec& spec) { return spec.parallel.data > 1 && spec.model.dropout > 0.0; })
      .elsewhere("Megatron-LM: --data-parallel-random-init");
  list.add(
          ACCRUE_FIELD(parallel.backend), "Backend",
          "How ranks exchange tensors. auto: shared memory on one host's CPUs, NCCL on GPUs. gloo works between hosts.")
      .elsewhere("PyTorch: backend; Megatron-LM: --distributed-backend");
  list.advanced(ACCRUE_FIELD(parallel.bucket_mb), "Bucket size",
                "Gradients are exchanged in pieces of about this size.")
      .above(0, 65536, "MiB")
      .elsewhere("PyTorch: bucket_cap_mb; Megatron-LM: --ddp-bucket-size");
}

void add_launch_fields(FieldList& list) {
  list.add(ACCRUE_FIELD(launch.device), "Device", "Where the ranks compute.")
      .elsewhere("transformers: use_cpu; Lightning: accelerator");
  list.add(ACCRUE_FIELD(launch.threads_per_rank), "Threads per rank",
           "Threads that one rank computes with. Left out: the host's cores divided by its ranks, at least 1. In a "
           "GPT's pipeline over shared memory, ranks of one thread use those of idle stages as well.")
      .range(1, 4096, "threads")
      .elsewhere("torchrun: OMP_NUM_THREADS; Accelerate: --num_cpu_threads_per_process");
  list.advanced(ACCRUE_FIELD(launch.collective_timeout_s), "Collective time-out",
                "How long a rank waits for the others in one exchange before the run is given up.")
      .above(0, 86400, "s")
      .elsewhere("PyTorch: timeout; Megatron-LM: --distributed-timeout-minutes");
  list.advanced(ACCRUE_FIELD(launch.join_timeout_s), "Join time-out",
                "How long the ranks may take to find each other at the start.")
      .above(0, 86400, "s");
  list.advanced(ACCRUE_FIELD(launch.stall_timeout_s), "Stall time-out",
                "A rank without progress for this long is reported as stalled.")
      .above(0, 86400, "s");
  list.advanced(ACCRUE_FIELD(launch.max_restarts), "Restarts",
                "How often the run restarts by itself, from its last checkpoint, after a rank was lost.")
      .range(0, 1000)
      .elsewhere("torchrun: --max-restarts");
}

void add_run_section(FieldList& list) {
  add_run_limits(list);
  add_early_end(list);
  list.add(ACCRUE_FIELD(run.seed), "Seed",
           "Initial weights, order of the samples, dropout and synthetic data follow from it.")
      .range(0, 9007199254740991.0)
      .elsewhere("Megatron-LM: --seed");
  list.advanced(ACCRUE_FIELD(run.record_weights), "Record weights",
                "Every update event carries all weights; for models under 1,000 parameters.");
  list.advanced(ACCRUE_FIELD(run.update_norm), "Update norm",
                "Every update event says how far it moved the weights: the L2 norm of what it added to them, over the "
                "whole model. Costs a copy of the weights and two passes over them.");
  list.advanced(ACCRUE_FIELD(run.parameter_norm), "Weight norm",
                "Every update event carries the L2 norm of all weights after it. Costs a pass over them.")
      .elsewhere("Megatron-LM: --log-params-norm");
  list.advanced(
          ACCRUE_FIELD(run.gradient_zeros), "Zeros in the gradient",
          "Every update event says how many elements of the reduced gradient are exactly 0. Costs a pass over it.")
      .elsewhere("Megatron-LM: --log-num-zeros-in-grad");
  list.advanced(ACCRUE_FIELD(run.on_non_finite), "On NaN or Inf",
                "What a non-finite loss or gradient does: pause at the boundary (stop if no user is there to answer), "
                "stop, or skip the window.");
  list.advanced(
          ACCRUE_FIELD(run.tensorboard_dir), "TensorBoard",
          "Folder for TensorBoard event files; a relative path is inside the run folder. The last rank writes them. "
          "Empty: none.")
      .elsewhere("Megatron-LM: --tensorboard-dir");
  list.advanced(ACCRUE_FIELD(run.timer_level), "Timers",
                "Which timers TensorBoard gets: 0 none, 1 those that run a few times in an update, such as "
                "all-grads-sync, 2 those of every micro-step too, such as forward-compute.")
      .range(0, 2)
      .when([](const RunSpec& spec) { return !spec.run.tensorboard_dir.empty(); })
      .elsewhere("Megatron-LM: --timing-log-level");
  list.add(ACCRUE_FIELD(run.name), "Name", "What the table of runs shows. Left empty: made from the spec.")
      .elsewhere("transformers: run_name");
}

void add_evaluate_fields(FieldList& list) {
  list.add(ACCRUE_FIELD(evaluate.every_updates), "Evaluate every",
           "The loss on the samples kept for evaluation is taken each time this many updates are done; 0 never does.")
      .range(0, 1e9, "updates")
      .elsewhere("transformers: eval_steps; Megatron-LM: --eval-interval");
  list.advanced(ACCRUE_FIELD(evaluate.every_micro_steps), "Evaluate every, inside windows",
                "The same after this many micro-steps, wherever in a window that is: it changes neither gradients nor "
                "counters nor the schedule. 0 never does.")
      .range(0, 1e9, "micro-steps");
  list.add(ACCRUE_FIELD(evaluate.batches), "Evaluation batches",
           "Batches of micro_batch samples each rank evaluates on, fewer where the kept samples end.")
      .range(1, 1e9, "batches")
      .elsewhere("Megatron-LM: --eval-iters");
  list.add(ACCRUE_FIELD(evaluate.exactness_every), "Check exactness every",
           "The gradient of a window is compared with that of the same samples in one batch each time this many "
           "updates are done, which costs about two more windows; 0 never does.")
      .range(0, 1e9, "updates");
}

void add_checkpoint_fields(FieldList& list) {
  list.add(ACCRUE_FIELD(checkpoint.every_updates), "Checkpoint every",
           "A checkpoint is written each time this many updates are done; 0 writes one only on request and at the end.")
      .range(0, 1e9, "updates")
      .elsewhere("transformers: save_steps; Megatron-LM: --save-interval");
  list.advanced(ACCRUE_FIELD(checkpoint.every_micro_steps), "Checkpoint every, inside windows",
                "A checkpoint is written each time this many micro-steps are done, inside windows too. "
                "accumulation.checkpoint_scope says what it holds of an open window. 0 writes none.")
      .range(0, 1e9, "micro-steps");
  list.add(ACCRUE_FIELD(checkpoint.keep), "Checkpoints kept", "How many of the newest checkpoints stay on disk.")
      .range(1, 1e6)
      .elsewhere("transformers: save_total_limit");
  list.add(ACCRUE_FIELD(checkpoint.best), "Best checkpoint",
           "A checkpoint is written after each evaluation (evaluate.every_updates) with a lower loss than any before "
           "in the run. It stays beside the newest until there is a better one.")
      .elsewhere(
          "transformers: load_best_model_at_end; Lightning: ModelCheckpoint(monitor); MMEngine: save_best; Keras: "
          "ModelCheckpoint(save_best_only)");
}

constexpr std::string_view bug_notes[] = {
    "no bug",
    "every micro-step has the same weight, whatever its size",
    "nothing divides the sum",
    "a short window is divided by N",
    "the first micro-step of a window reduces, the last does not",
    "no_sync covers the backward alone, so each micro-step reduces",
    "no no_sync at all, so each micro-step reduces",
    "the unfinished sum is clipped in every micro-step",
    "the schedule counts micro-steps and moves N times too fast",
    "batch norm takes its statistics from a micro-batch, not from the window",
    "a micro-step with bad values is left out, and the divisor counts it",
    "parameters that some micro-steps do not use are not reduced",
    "the gradients of one pipeline stage are never reduced",
    "the loss is scaled by the micro-batch's own size",
    "the last batch of an epoch is filled up with samples seen already",
    "gradients are cleared in every micro-step",
};

void add_teaching_fields(FieldList& list) {
  list.advanced(ACCRUE_FIELD(teaching.bug), "Bug",
                "Gives the run one of the bugs that gradient accumulation is known for, to see what it does and what "
                "finds it. The run's record keeps the mark.")
      .notes(bug_notes);
  list.advanced(ACCRUE_FIELD(teaching.overflow_at), "Overflow at",
                "Micro-steps, counted from 1, whose loss is made infinite.")
      .range(1, 1e12);
  list.advanced(ACCRUE_FIELD(teaching.overflow_rank), "Overflow on rank", "The rank on which they are; -1 means all.")
      .range(-1, 1023);
}

}  // namespace

void add_run_fields(FieldList& list) {
  add_parallel_fields(list);
  add_launch_fields(list);
  add_run_section(list);
  add_evaluate_fields(list);
  add_checkpoint_fields(list);
  add_teaching_fields(list);
}

}  // namespace accrue::field_detail
