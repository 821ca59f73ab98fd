// SPDX-License-Identifier: Apache-2.0
// Rows of [optimizer] and [schedule].
#include "spec_field_list.h"

namespace accrue::field_detail {

namespace {

constexpr std::string_view later_optimizers[] = {"CPUAdam",    "FusedAdam", "FusedLAMB", "FusedSGD",
                                                 "HybridAdam", "Lamb",      "Lars"};

bool is_adam(const RunSpec& spec) {
  return spec.optimizer.kind == OptimizerKind::adam || spec.optimizer.kind == OptimizerKind::adamw;
}
bool is_sgd(const RunSpec& spec) {
  return spec.optimizer.kind == OptimizerKind::sgd;
}
bool schedule_has_end(const RunSpec& spec) {
  return has_end(spec.schedule.kind);
}

}  // namespace

void add_optimizer_fields(FieldList& list) {
  list.add(
          "optimizer.kind", "Optimizer", ACCRUE_MEMBER(optimizer.kind),
          "sgd: gradient descent with momentum if wanted. adam: weight decay is part of the gradient. adamw: Adam with "
          "weight decay apart from the gradient.")
      .unavailable(later_optimizers)
      .alias("transformers", "optim")
      .alias("Megatron-LM", "--optimizer");
  list.add("optimizer.lr", "Learning rate", ACCRUE_MEMBER(optimizer.lr),
           "The peak of the schedule: what an update multiplies its step by.")
      .above(0, 1e6)
      .alias("transformers", "learning_rate")
      .alias("Megatron-LM", "--lr")
      .alias("Caffe", "base_lr");
  list.add("optimizer.weight_decay", "Weight decay", ACCRUE_MEMBER(optimizer.weight_decay),
           "Pull of the weights towards zero; matrices and embeddings only, not biases and norms.")
      .range(0, 1e3)
      .alias("Megatron-LM", "--weight-decay");
  list.add("optimizer.momentum", "Momentum", ACCRUE_MEMBER(optimizer.momentum),
           "Share of the last step that the next one keeps.")
      .range(0, 1)
      .alias("Megatron-LM", "--sgd-momentum")
      .when(is_sgd);
  list.add("optimizer.beta1", "Beta 1", ACCRUE_MEMBER(optimizer.beta1), "Memory of the mean of the gradients.")
      .range(0, 0.999999)
      .alias("transformers", "adam_beta1")
      .alias("Megatron-LM", "--adam-beta1")
      .when(is_adam)
      .advanced();
  list.add("optimizer.beta2", "Beta 2", ACCRUE_MEMBER(optimizer.beta2), "Memory of the mean of the squared gradients.")
      .range(0, 0.999999)
      .alias("transformers", "adam_beta2")
      .alias("Megatron-LM", "--adam-beta2")
      .when(is_adam)
      .advanced();
  list.add("optimizer.eps", "Epsilon", ACCRUE_MEMBER(optimizer.eps),
           "Added to the divisor of a step, so that it never divides by zero.")
      .above(0, 1)
      .alias("transformers", "adam_epsilon")
      .alias("Megatron-LM", "--adam-eps")
      .when(is_adam)
      .advanced();
  list.add("optimizer.clip_norm", "Clip at norm", ACCRUE_MEMBER(optimizer.clip_norm),
           "Longest gradient an update may use, as the L2 norm over all parameters; longer ones are shortened to it. 0 "
           "switches clipping off.")
      .range(0, 1e9)
      .alias("transformers", "max_grad_norm")
      .alias("llm-pytorch", "max_norm")
      .alias("MMEngine", "clip_grad")
      .alias("Megatron-LM", "--clip-grad")
      .alias("Lightning", "gradient_clip_val")
      .alias("DeepSpeed", "gradient_clipping");
  list.add("optimizer.loss_scale", "Loss scale", ACCRUE_MEMBER(optimizer.loss_scale),
           "First value of what losses are multiplied by before their backward, so that small gradients survive in "
           "float16. An update that overflows is left out and halves it; 2000 without one double it. Left out: 65536 "
           "for "
           "float16, none otherwise. 0 switches scaling off.")
      .range(0, 1e30)
      .alias("MMEngine", "loss_scale")
      .alias("MMEngine", "loss_scaler")
      .alias("llm-pytorch", "grad_scaler")
      .alias("PyTorch", "GradScaler")
      .alias("PyTorch", "init_scale")
      .alias("Megatron-LM", "--initial-loss-scale")
      .advanced();
}

void add_schedule_fields(FieldList& list) {
  list.add("schedule.kind", "Schedule", ACCRUE_MEMBER(schedule.kind),
           "How the learning rate moves. constant; linear and cosine fall to min_lr at the end; inverse-square-root "
           "falls after the warm-up; WSD stays at the peak and falls in its last part; exponential multiplies by gamma "
           "at every position.")
      .alias("transformers", "lr_scheduler_type")
      .alias("Megatron-LM", "--lr-decay-style");
  list.add("schedule.warmup", "Warm-up", ACCRUE_MEMBER(schedule.warmup),
           "Positions over which the rate rises to its peak. A position is one tick of accumulation.schedule_clock: an "
           "update, unless the dialect counts otherwise.")
      .unit("schedule positions")
      .range(0, 1e9)
      .alias("transformers", "warmup_steps")
      .alias("transformers", "num_warmup_steps")
      .alias("Megatron-LM", "--lr-warmup-iters");
  list.add("schedule.min_lr", "Lowest rate", ACCRUE_MEMBER(schedule.min_lr),
           "The rate never falls below it, and linear, cosine and WSD end at it.")
      .range(0, 1e6)
      .alias("Megatron-LM", "--min-lr")
      .when([](const RunSpec& spec) { return spec.schedule.kind != ScheduleKind::constant; });
  list.add("schedule.gamma", "Gamma", ACCRUE_MEMBER(schedule.gamma), "Factor of the exponential schedule a position.")
      .above(0, 1)
      .alias("PyTorch", "gamma")
      .when([](const RunSpec& spec) { return spec.schedule.kind == ScheduleKind::exponential; });
  list.add("schedule.decay_fraction", "Decaying part", ACCRUE_MEMBER(schedule.decay_fraction),
           "Last part of a WSD schedule, in which the rate falls.")
      .above(0, 1)
      .when([](const RunSpec& spec) { return spec.schedule.kind == ScheduleKind::wsd; });
  list.add("schedule.total", "Length", ACCRUE_MEMBER(schedule.total),
           "Positions at which linear, cosine and WSD end. Left out: as many as the run will tick, so it ends with the "
           "run.")
      .unit("schedule positions")
      .range(1, 1e12)
      .alias("transformers", "num_training_steps")
      .alias("PyTorch", "total_steps")
      .alias("Megatron-LM", "--lr-decay-iters")
      .when(schedule_has_end)
      .advanced();
}

}  // namespace accrue::field_detail
