// SPDX-License-Identifier: Apache-2.0
// Rows of [parallel], [launch], [run], [evaluate] and [checkpoint].
#include "spec_field_list.h"

namespace accrue::field_detail {

namespace {

void add_run_limits(FieldList& list) {
  list.add("run.updates", "Updates", ACCRUE_MEMBER(run.updates),
           "The run ends after this many updates. Set exactly one of updates, epochs, samples and tokens; none of them "
           "means 200 updates.")
      .unit("updates")
      .range(1, 1e8)
      .alias("transformers", "max_steps")
      .alias("Lightning", "max_steps")
      .alias("Megatron-LM", "--train-iters");
  list.add("run.epochs", "Epochs", ACCRUE_MEMBER(run.epochs),
           "The run ends after this many passes over the data; 0.5 is half a pass.")
      .unit("epochs")
      .above(0, 1e6)
      .alias("transformers", "num_train_epochs")
      .alias("Lightning", "max_epochs");
  list.add("run.samples", "Samples", ACCRUE_MEMBER(run.samples),
           "The run ends with the micro-step in which all ranks together have trained on this many samples.")
      .unit("samples")
      .range(1, 1e13)
      .alias("Megatron-LM", "--train-samples");
  list.add("run.tokens", "Tokens", ACCRUE_MEMBER(run.tokens),
           "The run ends with the micro-step in which all ranks together have trained on this many tokens.")
      .unit("tokens")
      .range(1, 1e16);
}

}  // namespace

void add_parallel_fields(FieldList& list) {
  list.add("parallel.data", "Data-parallel ranks", ACCRUE_MEMBER(parallel.data),
           "Processes that hold the whole model and share the samples among them.")
      .unit("ranks")
      .range(1, 1024)
      .alias("Accelerate", "num_processes")
      .alias("torchrun", "--nproc-per-node")
      .alias("Lightning", "devices");
  list.add("parallel.tensor", "Tensor-parallel ranks", ACCRUE_MEMBER(parallel.tensor),
           "Ranks that share each layer's matrices.")
      .unit("ranks")
      .range(1, 1024)
      .alias("Megatron-LM", "--tensor-model-parallel-size")
      .advanced();
  list.add("parallel.pipeline", "Pipeline stages", ACCRUE_MEMBER(parallel.pipeline),
           "Ranks that each hold some of the layers.")
      .unit("ranks")
      .range(1, 1024)
      .alias("Megatron-LM", "--pipeline-model-parallel-size")
      .advanced();
  list.add("parallel.virtual_pipeline", "Virtual stages", ACCRUE_MEMBER(parallel.virtual_pipeline),
           "Groups of layers that each pipeline stage holds.")
      .range(1, 1024)
      .alias("Megatron-LM", "--num-virtual-stages-per-pipeline-rank")
      .advanced();
  list.add("parallel.sequence", "Sequence-parallel", ACCRUE_MEMBER(parallel.sequence),
           "Whether tensor-parallel ranks also share the positions of a sequence between the matrices.")
      .alias("Megatron-LM", "--sequence-parallel")
      .advanced();
  list.add("parallel.zero", "ZeRO stage", ACCRUE_MEMBER(parallel.zero),
           "0: each data-parallel rank holds the whole optimizer state. 1: each holds its share.")
      .range(0, 1)
      .alias("DeepSpeed", "zero_optimization.stage")
      .alias("Megatron-LM", "--use-distributed-optimizer")
      .advanced();
  list.add(
          "parallel.backend", "Backend", ACCRUE_MEMBER(parallel.backend),
          "How ranks exchange tensors. auto: shared memory on one host's CPUs, NCCL on GPUs. gloo works between hosts.")
      .alias("PyTorch", "backend")
      .alias("Megatron-LM", "--distributed-backend");
  list.add("parallel.bucket_mb", "Bucket size", ACCRUE_MEMBER(parallel.bucket_mb),
           "Gradients are exchanged in pieces of about this size.")
      .unit("MiB")
      .above(0, 65536)
      .alias("PyTorch", "bucket_cap_mb")
      .alias("Megatron-LM", "--ddp-bucket-size")
      .advanced();
}

void add_launch_fields(FieldList& list) {
  list.add("launch.device", "Device", ACCRUE_MEMBER(launch.device), "Where the ranks compute.")
      .alias("transformers", "use_cpu")
      .alias("Lightning", "accelerator");
  list.add("launch.threads_per_rank", "Threads per rank", ACCRUE_MEMBER(launch.threads_per_rank),
           "Threads that one rank computes with. Left out: the host's cores divided by its ranks, at least 1.")
      .unit("threads")
      .range(1, 4096)
      .alias("torchrun", "OMP_NUM_THREADS")
      .alias("Accelerate", "--num_cpu_threads_per_process");
  list.add("launch.collective_timeout_s", "Collective time-out", ACCRUE_MEMBER(launch.collective_timeout_s),
           "How long a rank waits for the others in one exchange before the run is given up.")
      .unit("s")
      .above(0, 86400)
      .alias("PyTorch", "timeout")
      .alias("Megatron-LM", "--distributed-timeout-minutes")
      .advanced();
  list.add("launch.join_timeout_s", "Join time-out", ACCRUE_MEMBER(launch.join_timeout_s),
           "How long the ranks may take to meet.")
      .unit("s")
      .above(0, 86400)
      .advanced();
  list.add("launch.stall_timeout_s", "Stall time-out", ACCRUE_MEMBER(launch.stall_timeout_s),
           "A rank without progress for this long is reported as stalled.")
      .unit("s")
      .above(0, 86400)
      .advanced();
  list.add("launch.max_restarts", "Restarts", ACCRUE_MEMBER(launch.max_restarts),
           "How often the run restarts by itself from its last checkpoint after a rank was lost.")
      .range(0, 1000)
      .alias("torchrun", "--max-restarts")
      .advanced();
}

void add_run_fields(FieldList& list) {
  add_run_limits(list);
  list.add("run.seed", "Seed", ACCRUE_MEMBER(run.seed),
           "Initial weights, order of the samples, dropout and synthetic data follow from it.")
      .range(0, 9007199254740991.0)
      .alias("Megatron-LM", "--seed");
  list.add("run.record_weights", "Record weights", ACCRUE_MEMBER(run.record_weights),
           "Every update event carries all weights; for models under 1,000 parameters.")
      .advanced();
  list.add("run.on_non_finite", "On NaN or Inf", ACCRUE_MEMBER(run.on_non_finite),
           "What a non-finite loss or gradient does: pause at the boundary (stop if no user is there to answer), stop, "
           "or "
           "skip the window.")
      .advanced();
  list.add("run.name", "Name", ACCRUE_MEMBER(run.name), "What the table of runs shows. Left empty: made from the spec.")
      .alias("transformers", "run_name");
}

void add_evaluate_fields(FieldList& list) {
  list.add("evaluate.every_updates", "Evaluate every", ACCRUE_MEMBER(evaluate.every_updates),
           "The loss on the samples kept for evaluation is taken each time this many updates are done; 0 never does.")
      .unit("updates")
      .range(0, 1e9)
      .alias("transformers", "eval_steps")
      .alias("Megatron-LM", "--eval-interval");
  list.add("evaluate.every_micro_steps", "Evaluate every, inside windows", ACCRUE_MEMBER(evaluate.every_micro_steps),
           "The same after this many micro-steps, wherever in a window that is: it changes neither gradients nor "
           "counters nor the schedule. 0 never does.")
      .unit("micro-steps")
      .range(0, 1e9)
      .advanced();
  list.add("evaluate.batches", "Evaluation batches", ACCRUE_MEMBER(evaluate.batches),
           "Batches of micro_batch samples each rank evaluates on, fewer where the kept samples end.")
      .unit("batches")
      .range(1, 1e9)
      .alias("Megatron-LM", "--eval-iters");
  list.add(
          "evaluate.exactness_every", "Check exactness every", ACCRUE_MEMBER(evaluate.exactness_every),
          "The gradient of a window is compared with that of the same samples in one batch each time this many updates "
          "are done, which costs about two more windows; 0 never does.")
      .unit("updates")
      .range(0, 1e9);
}

void add_checkpoint_fields(FieldList& list) {
  list.add("checkpoint.every_updates", "Checkpoint every", ACCRUE_MEMBER(checkpoint.every_updates),
           "A checkpoint is written each time this many updates are done; 0 writes one only on request and at the end.")
      .unit("updates")
      .range(0, 1e9)
      .alias("transformers", "save_steps")
      .alias("Megatron-LM", "--save-interval");
  list.add("checkpoint.every_micro_steps", "Checkpoint every, inside windows",
           ACCRUE_MEMBER(checkpoint.every_micro_steps),
           "A checkpoint is written each time this many micro-steps are done, inside windows too. "
           "accumulation.checkpoint_scope says what it holds of an open window. 0 writes none.")
      .unit("micro-steps")
      .range(0, 1e9)
      .advanced();
  list.add("checkpoint.keep", "Checkpoints kept", ACCRUE_MEMBER(checkpoint.keep),
           "How many of the newest checkpoints stay on disk.")
      .range(1, 1e6)
      .alias("transformers", "save_total_limit");
}

void add_teaching_fields(FieldList& list) {
  list.add("teaching.bug", "Bug", ACCRUE_MEMBER(teaching.bug),
           "Gives the run one of the bugs that gradient accumulation is known for, to see what it does and what finds "
           "it. The run's record keeps the mark.")
      .advanced();
  list.add("teaching.overflow_at", "Overflow at", ACCRUE_MEMBER(teaching.overflow_at),
           "Micro-steps, counted from 1, whose loss is made infinite.")
      .range(1, 1e12)
      .advanced();
  list.add("teaching.overflow_rank", "Overflow on rank", ACCRUE_MEMBER(teaching.overflow_rank),
           "The rank on which they are; -1 means all.")
      .range(-1, 1023)
      .advanced();
}

}  // namespace accrue::field_detail
