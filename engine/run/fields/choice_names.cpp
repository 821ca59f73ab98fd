// SPDX-License-Identifier: Apache-2.0
// Spelling of every choice of a spec. Names are snake_case, except for spellings fixed by the spec format. Each list is
// in enum order, up to the last value that a spec can name.
#include "accrue/run/fields/choice_names.h"

namespace accrue {

namespace {

using Name = std::string_view;

}  // namespace

#define ACCRUE_CHOICES(Enum, last, ...)                                                              \
  template <>                                                                                        \
  std::span<const std::string_view> choice_names<Enum>() {                                           \
    static constexpr Name names[] = {__VA_ARGS__};                                                   \
    static_assert(std::size(names) == static_cast<std::size_t>(Enum::last) + 1, "one name a value"); \
    return names;                                                                                    \
  }

ACCRUE_CHOICES(ModelKind, llama, "linear", "mlp", "gpt", "bert", "t5", "llama")
ACCRUE_CHOICES(Dtype, float16, "float32", "float64", "bfloat16", "float16")
ACCRUE_CHOICES(WeightInit, checkpoint, "torch", "zeros", "normal", "values", "checkpoint")
ACCRUE_CHOICES(LossKind, cross_entropy, "mse", "cross_entropy")
ACCRUE_CHOICES(Activation, swiglu, "relu", "gelu", "tanh", "gelu_tanh", "swiglu")
ACCRUE_CHOICES(NormKind, rms, "layer", "rms")
ACCRUE_CHOICES(PositionKind, rotary, "learned", "rotary")
ACCRUE_CHOICES(DataKind, synthetic, "text", "tokens", "indexed", "csv", "inline", "synthetic")
ACCRUE_CHOICES(OptimizerKind, lars, "sgd", "adam", "adamw", "CPUAdam", "FusedAdam", "FusedLAMB", "FusedSGD",
               "HybridAdam", "Lamb", "Lars")
ACCRUE_CHOICES(ScheduleKind, exponential, "constant", "linear", "cosine", "inverse-square-root", "WSD", "exponential")
ACCRUE_CHOICES(RateClock, samples, "positions", "samples")
ACCRUE_CHOICES(DecayTail, minus_square_root, "linear", "cosine", "exponential", "minus-square-root")
ACCRUE_CHOICES(SamplerKind, cyclic, "single", "cyclic")
ACCRUE_CHOICES(WeightDecayStyle, cosine, "constant", "linear", "cosine")
ACCRUE_CHOICES(VocabularyPadding, megatron, "fixed", "megatron")
ACCRUE_CHOICES(PipelineOrder, all_forward, "1f1b", "all-forward")
ACCRUE_CHOICES(RecomputeKind, full, "none", "selective", "full")
ACCRUE_CHOICES(RecomputeMethod, block, "uniform", "block")
ACCRUE_CHOICES(BackendKind, nccl, "auto", "shm", "gloo", "nccl")
ACCRUE_CHOICES(DeviceKind, cuda, "cpu", "cuda")
ACCRUE_CHOICES(NonFiniteRule, skip, "pause", "stop", "skip")
ACCRUE_CHOICES(RunMeasure, validation_loss, "none", "validation loss")

ACCRUE_CHOICES(Dialect, mmengine, "accrue", "llm", "colossalai", "accelerate", "mmengine")
ACCRUE_CHOICES(GroupLength, memory_search, "fixed", "by_update", "by_epoch", "global_batch", "memory_search")
ACCRUE_CHOICES(EpochTail, pad_repeat, "carry", "drop_stop", "drop_drain", "flush", "pad_repeat")
ACCRUE_CHOICES(RunTail, flush, "discard", "flush")
ACCRUE_CHOICES(CounterReset, at_flush, "never", "epoch_end", "at_flush")
ACCRUE_CHOICES(Normalizer, tokens, "none", "steps", "true_size", "run_remainder", "samples", "tokens")
ACCRUE_CHOICES(NormalizerScope, data_parallel, "rank", "data_parallel")
ACCRUE_CHOICES(NormalizeWhen, deferred, "eager", "deferred")
ACCRUE_CHOICES(BoundaryCompare, plan, "exact", "at_least", "modulo", "plan")
ACCRUE_CHOICES(ReduceWhen, never, "boundary", "every_micro_step", "never")
ACCRUE_CHOICES(ReduceOp, sum, "mean", "sum")
ACCRUE_CHOICES(ReduceMechanism, handlers, "reducer", "post_backward", "handlers")
ACCRUE_CHOICES(NoSyncCover, backward, "forward_backward", "forward", "backward")
ACCRUE_CHOICES(ClipStage, none, "in_update", "every_micro_step", "none")
ACCRUE_CHOICES(ClipKind, value, "norm", "value")
ACCRUE_CHOICES(OverflowPolicy, raise, "hold", "advance", "raise")
ACCRUE_CHOICES(ScheduleClock, external, "update", "update_times_world", "micro_step", "epoch", "every_nth_call",
               "external")
ACCRUE_CHOICES(UnevenRanks, drop, "repeat", "empty_micro_steps", "drop")
ACCRUE_CHOICES(CheckpointScope, nothing, "boundary", "anywhere", "counter_only", "nothing")
ACCRUE_CHOICES(AccumulationDtype, float32_compensated, "parameter", "float32", "float32_compensated")
ACCRUE_CHOICES(ReportedLoss, last_micro, "by_denominator", "mean_of_micro", "last_micro")
ACCRUE_CHOICES(BatchRounding, decrease, "error", "round", "fill", "decrease")
ACCRUE_CHOICES(Replay, narrow_no_sync, "scheduler_state", "clip_partial_sums", "drain_early", "adjust_scheduler",
               "zero_before_backward", "restart_count", "narrow_no_sync")
ACCRUE_CHOICES(Bug, zero_grad_inside, "none", "mean_of_means", "no_division", "tail_by_steps", "no_sync_off_by_one",
               "no_sync_backward_only", "no_no_sync", "clip_every_micro_step", "schedule_per_micro_step", "batch_norm",
               "skipped_micro_step", "unused_parameters", "pipeline_sync", "divide_by_own_size", "repeated_samples",
               "zero_grad_inside")

}  // namespace accrue
