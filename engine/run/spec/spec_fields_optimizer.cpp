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
  list.add(ACCRUE_FIELD(optimizer.kind), "Optimizer",
           "sgd: gradient descent with momentum if wanted. adam: weight decay is part of the gradient. adamw: Adam "
           "with weight decay apart from the gradient.")
      .unavailable(later_optimizers)
      .elsewhere("transformers: optim; Megatron-LM: --optimizer");
  list.add(ACCRUE_FIELD(optimizer.lr), "Learning rate",
           "The peak of the schedule: what an update multiplies its step by.")
      .above(0, 1e6)
      .elsewhere("transformers: learning_rate; Megatron-LM: --lr; Caffe: base_lr");
  list.add(ACCRUE_FIELD(optimizer.weight_decay), "Weight decay",
           "Pull of the weights towards zero; matrices and embeddings only, not biases and norms.")
      .range(0, 1e3)
      .elsewhere("Megatron-LM: --weight-decay");
  list.add(ACCRUE_FIELD(optimizer.momentum), "Momentum", "Share of the last step that the next one keeps.")
      .range(0, 1)
      .when(is_sgd)
      .elsewhere("Megatron-LM: --sgd-momentum");
  list.advanced(ACCRUE_FIELD(optimizer.beta1), "Beta 1", "Memory of the mean of the gradients.")
      .range(0, 0.999999)
      .when(is_adam)
      .elsewhere("transformers: adam_beta1; Megatron-LM: --adam-beta1");
  list.advanced(ACCRUE_FIELD(optimizer.beta2), "Beta 2", "Memory of the mean of the squared gradients.")
      .range(0, 0.999999)
      .when(is_adam)
      .elsewhere("transformers: adam_beta2; Megatron-LM: --adam-beta2");
  list.advanced(ACCRUE_FIELD(optimizer.eps), "Epsilon",
                "Added to the divisor of a step, so that it never divides by zero.")
      .above(0, 1)
      .when(is_adam)
      .elsewhere("transformers: adam_epsilon; Megatron-LM: --adam-eps");
  list.add(ACCRUE_FIELD(optimizer.clip_norm), "Clip at norm",
           "Longest gradient an update may use, as the L2 norm over all parameters; longer ones are shortened to it. 0 "
           "switches clipping off.")
      .range(0, 1e9)
      .elsewhere(
          "transformers: max_grad_norm; llm-pytorch: max_norm; MMEngine: clip_grad; Megatron-LM: --clip-grad; "
          "Lightning: gradient_clip_val; DeepSpeed: gradient_clipping");
  list.advanced(ACCRUE_FIELD(optimizer.loss_scale), "Loss scale",
                "First value of what losses are multiplied by before their backward, so that small gradients survive "
                "in float16. An update that overflows is left out and halves it; 2000 without one double it. Left out: "
                "65536 for float16, none otherwise. 0 switches scaling off.")
      .range(0, 1e30)
      .elsewhere(
          "MMEngine: loss_scale, loss_scaler; llm-pytorch: grad_scaler; PyTorch: GradScaler, init_scale; Megatron-LM: "
          "--initial-loss-scale");
}

void add_schedule_fields(FieldList& list) {
  list.add(ACCRUE_FIELD(schedule.kind), "Schedule",
           "How the learning rate moves. constant; linear and cosine fall to min_lr at the end; inverse-square-root "
           "falls after the warm-up; WSD stays at the peak and falls in its last part; exponential multiplies by gamma "
           "at every position.")
      .elsewhere("transformers: lr_scheduler_type; Megatron-LM: --lr-decay-style");
  list.add(ACCRUE_FIELD(schedule.warmup), "Warm-up",
           "Positions over which the rate rises to its peak. A position is one tick of accumulation.schedule_clock: an "
           "update, unless the dialect counts otherwise.")
      .range(0, 1e9, "schedule positions")
      .elsewhere("transformers: warmup_steps, num_warmup_steps; Megatron-LM: --lr-warmup-iters");
  list.add(ACCRUE_FIELD(schedule.min_lr), "Lowest rate",
           "The rate never falls below it, and linear, cosine and WSD end at it.")
      .range(0, 1e6)
      .when([](const RunSpec& spec) { return spec.schedule.kind != ScheduleKind::constant; })
      .elsewhere("Megatron-LM: --min-lr");
  list.add(ACCRUE_FIELD(schedule.gamma), "Gamma", "Factor of the exponential schedule a position.")
      .above(0, 1)
      .when([](const RunSpec& spec) { return spec.schedule.kind == ScheduleKind::exponential; })
      .elsewhere("PyTorch: gamma");
  list.add(ACCRUE_FIELD(schedule.decay_fraction), "Decaying part",
           "Last part of a WSD schedule, in which the rate falls.")
      .above(0, 1)
      .when([](const RunSpec& spec) { return spec.schedule.kind == ScheduleKind::wsd; });
  list.advanced(ACCRUE_FIELD(schedule.total), "Length",
                "Positions at which linear, cosine and WSD end. Left out: as many as the run will tick, so it ends "
                "with the run.")
      .range(1, 1e12, "schedule positions")
      .when(schedule_has_end)
      .elsewhere("transformers: num_training_steps; PyTorch: total_steps; Megatron-LM: --lr-decay-iters");
}

}  // namespace accrue::field_detail
