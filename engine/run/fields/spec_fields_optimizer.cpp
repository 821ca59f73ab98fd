// SPDX-License-Identifier: Apache-2.0
// Rows of [optimizer] and [schedule].
#include "spec_field_list.h"

namespace accrue::field_detail {

namespace {

constexpr std::string_view optimizer_notes[] = {
    "gradient descent, with momentum if wanted",
    "Adam; weight decay is part of the gradient",
    "Adam with weight decay apart from the gradient",
    "Colossal-AI's Adam for the CPU; its states may lie in files",
    "Colossal-AI's fused Adam; its bias correction comes before the root",
    "Colossal-AI's LAMB, which clips by the norm of all gradients",
    "Colossal-AI's SGD, with dampening, Nesterov's momentum and late weight decay",
    "CPUAdam for parameters on the CPU, FusedAdam on a device",
    "LAMB: Adam's step, scaled for each parameter by its own norm",
    "LARS: momentum, scaled for each parameter by its own norm",
};

/// Whether the spec's optimizer is one of `kinds`.
template <OptimizerKind... kinds>
bool is_one_of(const RunSpec& spec) {
  return ((spec.optimizer.kind == kinds) || ...);
}

constexpr auto of_moments =
    is_one_of<OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::cpu_adam, OptimizerKind::fused_adam,
              OptimizerKind::hybrid_adam, OptimizerKind::lamb, OptimizerKind::fused_lamb>;
constexpr auto with_momentum = is_one_of<OptimizerKind::sgd, OptimizerKind::fused_sgd, OptimizerKind::lars>;
constexpr auto of_fused_sgd = is_one_of<OptimizerKind::fused_sgd>;
constexpr auto of_fused_lamb = is_one_of<OptimizerKind::fused_lamb>;
constexpr auto of_lamb = is_one_of<OptimizerKind::lamb>;
constexpr auto of_lars = is_one_of<OptimizerKind::lars>;
constexpr auto with_modes = is_one_of<OptimizerKind::cpu_adam, OptimizerKind::fused_adam, OptimizerKind::hybrid_adam,
                                      OptimizerKind::fused_lamb>;
constexpr auto with_correction = is_one_of<OptimizerKind::cpu_adam, OptimizerKind::fused_adam,
                                           OptimizerKind::hybrid_adam, OptimizerKind::lamb, OptimizerKind::fused_lamb>;
constexpr auto with_files = is_one_of<OptimizerKind::cpu_adam, OptimizerKind::hybrid_adam>;

bool has_epsilon(const RunSpec& spec) {
  return of_moments(spec) || of_lars(spec);
}
bool decay_moves(const RunSpec& spec) {
  return spec.optimizer.weight_decay_style != WeightDecayStyle::constant;
}
bool schedule_has_total(const RunSpec& spec) {
  const ScheduleSpec& schedule = spec.schedule;
  const bool in_samples = schedule.clock == RateClock::samples;
  return has_end(schedule.kind) || (in_samples && schedule.kind == ScheduleKind::inverse_square_root);
}
bool scales_loss(const RunSpec& spec) {
  return spec.optimizer.loss_scale ? *spec.optimizer.loss_scale > 0.0 : spec.model.dtype == Dtype::float16;
}

}  // namespace

void add_optimizer_fields(FieldList& list) {
  list.add(ACCRUE_FIELD(optimizer.kind), "Optimizer",
           "sgd: gradient descent with momentum if wanted. adam: weight decay is part of the gradient. adamw: Adam "
           "with weight decay apart from the gradient. The others are Colossal-AI's, by their own rules: CPUAdam, "
           "FusedAdam and HybridAdam are Adams, FusedSGD an SGD, Lamb and FusedLAMB scale Adam's step for each "
           "parameter by its norm, and Lars so scales momentum.")
      .notes(optimizer_notes)
      .elsewhere("transformers: optim; Megatron-LM: --optimizer");
  list.add(ACCRUE_FIELD(optimizer.lr), "Learning rate", "Peak learning rate of the schedule.")
      .above(0, 1e6)
      .elsewhere("transformers: learning_rate; Megatron-LM: --lr; Caffe: base_lr");
  list.add(ACCRUE_FIELD(optimizer.weight_decay), "Weight decay",
           "Decay of the weights towards zero, of matrices and embeddings, not of biases and norms.")
      .range(0, 1e3)
      .elsewhere("Megatron-LM: --weight-decay");
  list.advanced(
          ACCRUE_FIELD(optimizer.weight_decay_style), "Weight decay moves",
          "constant: weight_decay throughout. linear and cosine: from start_weight_decay to end_weight_decay over "
          "the samples of the run.")
      .elsewhere("Megatron-LM: --weight-decay-incr-style, weight_decay_incr_style");
  list.advanced(ACCRUE_FIELD(optimizer.start_weight_decay), "Weight decay at the start",
                "Where a moving weight decay starts.")
      .range(0, 1e3)
      .when(decay_moves)
      .elsewhere("Megatron-LM: --start-weight-decay");
  list.advanced(ACCRUE_FIELD(optimizer.end_weight_decay), "Weight decay at the end",
                "Where it ends; not below the start.")
      .range(0, 1e3)
      .when(decay_moves)
      .elsewhere("Megatron-LM: --end-weight-decay");
  list.advanced(ACCRUE_FIELD(optimizer.no_decay), "Parameters without decay",
                "Names of parameters that weight decay leaves alone; * stands for any characters. Left out: biases and "
                "the weights of norms.")
      .elsewhere("Megatron-LM: no_wd_decay_cond");
  list.advanced(ACCRUE_FIELD(optimizer.scaled_lr), "Parameters with a rate of their own",
                "Names of parameters whose rate is lr_mult times the others'; * stands for any characters.")
      .elsewhere("Megatron-LM: scale_lr_cond");
  list.advanced(ACCRUE_FIELD(optimizer.lr_mult), "Rate multiplier", "What the rate of scaled_lr is multiplied by.")
      .above(0, 1e6)
      .when([](const RunSpec& spec) { return !spec.optimizer.scaled_lr.empty(); })
      .elsewhere("Megatron-LM: lr_mult");
  list.advanced(ACCRUE_FIELD(optimizer.decoupled_lr), "Rate of the embeddings",
                "Peak rate of the token embedding, which is a GPT's output layer too. Left out: the same as lr.")
      .above(0, 1e6)
      .elsewhere("Megatron-LM: --decoupled-lr");
  list.advanced(ACCRUE_FIELD(optimizer.decoupled_min_lr), "Lowest rate of the embeddings",
                "Where their schedule ends. Left out: the same as schedule.min_lr.")
      .range(0, 1e6)
      .when([](const RunSpec& spec) { return spec.optimizer.decoupled_lr.has_value(); })
      .elsewhere("Megatron-LM: --decoupled-min-lr");
  list.add(ACCRUE_FIELD(optimizer.momentum), "Momentum",
           "Momentum: the share of the previous step that is added to the next one.")
      .range(0, 1)
      .when(with_momentum)
      .elsewhere("Megatron-LM: --sgd-momentum");
  list.advanced(
          ACCRUE_FIELD(optimizer.dampening), "Dampening",
          "Dampening of the momentum: a gradient enters it times 1 - dampening, from a parameter's second update on.")
      .range(0, 1)
      .when(of_fused_sgd)
      .elsewhere("Colossal-AI: dampening");
  list.advanced(ACCRUE_FIELD(optimizer.nesterov), "Nesterov",
                "Whether the step looks ahead along the momentum. Needs a momentum, and no dampening.")
      .when(of_fused_sgd)
      .elsewhere("Colossal-AI: nesterov");
  list.advanced(ACCRUE_FIELD(optimizer.wd_after_momentum), "Weight decay after momentum",
                "Whether weight decay joins the step after the momentum, which then does not remember it.")
      .when(of_fused_sgd)
      .elsewhere("Colossal-AI: wd_after_momentum");
  list.advanced(ACCRUE_FIELD(optimizer.beta1), "Beta 1", "Decay rate of the running mean of the gradients.")
      .range(0, 0.999999)
      .when(of_moments)
      .elsewhere("transformers: adam_beta1; Megatron-LM: --adam-beta1; Colossal-AI: betas");
  list.advanced(ACCRUE_FIELD(optimizer.beta2), "Beta 2", "Decay rate of the running mean of the squared gradients.")
      .range(0, 0.999999)
      .when(of_moments)
      .elsewhere("transformers: adam_beta2; Megatron-LM: --adam-beta2; Colossal-AI: betas");
  list.advanced(
          ACCRUE_FIELD(optimizer.eps), "Epsilon",
          "Added to the divisor of a step, so that it never divides by zero. Left out: 1e-8, for the LAMBs 1e-6, for "
          "Lars 0.")
      .range(0, 1)
      .when(has_epsilon)
      .elsewhere("transformers: adam_epsilon; Megatron-LM: --adam-eps; Colossal-AI: eps, epsilon");
  list.fields.back().derived = [](const RunSpec& spec) { return SpecValue(epsilon_of(spec.optimizer)); };
  list.advanced(ACCRUE_FIELD(optimizer.bias_correction), "Bias correction",
                "Whether the bias of the moments towards zero is corrected in the first updates. Left out: yes; for "
                "Lamb, no.")
      .when(with_correction)
      .elsewhere("Colossal-AI: bias_correction");
  list.fields.back().derived = [](const RunSpec& spec) { return SpecValue(!of_lamb(spec)); };
  list.advanced(ACCRUE_FIELD(optimizer.adamw_mode), "Decay apart",
                "Whether weight decay stays apart from the gradient, as in AdamW. No: it is part of it, as in Adam.")
      .when(with_modes)
      .elsewhere("Colossal-AI: adamw_mode, adam_w_mode");
  list.advanced(ACCRUE_FIELD(optimizer.adam), "Without its ratio",
                "Lamb without the trust ratio, for comparison: every parameter's step stays as Adam makes it.")
      .when(of_lamb)
      .elsewhere("Colossal-AI: adam");
  list.advanced(ACCRUE_FIELD(optimizer.max_grad_norm), "FusedLAMB clips at",
                "FusedLAMB's own clipping, after clip_norm: the largest L2 norm of the gradient over all parameters. 0 "
                "switches it off.")
      .range(0, 1e9)
      .when(of_fused_lamb)
      .elsewhere("Colossal-AI: max_grad_norm");
  list.advanced(ACCRUE_FIELD(optimizer.grad_averaging), "Averages gradients",
                "Whether the first moment takes 1 - beta1 of a gradient. No: it takes all of it.")
      .when(of_fused_lamb)
      .elsewhere("Colossal-AI: grad_averaging");
  list.advanced(ACCRUE_FIELD(optimizer.use_nvlamb), "NVLAMB",
                "Whether parameters without weight decay are scaled by their norm too.")
      .when(of_fused_lamb)
      .elsewhere("Colossal-AI: use_nvlamb");
  list.advanced(ACCRUE_FIELD(optimizer.eeta), "Trust coefficient",
                "Trust coefficient: how far a parameter moves in a step of rate 1, relative to its norm.")
      .above(0, 1)
      .when(of_lars)
      .elsewhere("Colossal-AI: eeta");
  list.advanced(ACCRUE_FIELD(optimizer.nvme_offload_fraction), "States in files",
                "Part of the optimizer's states that each rank keeps in files, from the first parameter on. The files "
                "have no names and go with their rank; checkpoints hold these states as all others.")
      .range(0, 1)
      .when(with_files)
      .elsewhere("Colossal-AI: nvme_offload_fraction");
  list.advanced(ACCRUE_FIELD(optimizer.nvme_offload_dir), "Folder of the states",
                "Where those files lie: an absolute path on each rank's host, on a fast disk.")
      .when([](const RunSpec& spec) { return with_files(spec) && spec.optimizer.nvme_offload_fraction > 0.0; })
      .elsewhere("Colossal-AI: nvme_offload_dir");
  list.add(ACCRUE_FIELD(optimizer.clip_norm), "Clip at norm",
           "Largest L2 norm of the gradient over all parameters; larger gradients are scaled down to it. 0 switches "
           "clipping off.")
      .range(0, 1e9)
      .elsewhere(
          "transformers: max_grad_norm; llm-pytorch: max_norm; MMEngine: clip_grad; Megatron-LM: --clip-grad; "
          "Lightning: gradient_clip_val; DeepSpeed: gradient_clipping");
  list.advanced(
          ACCRUE_FIELD(optimizer.loss_scale), "Loss scale",
          "First value of what losses are multiplied by before their backward, so that small gradients survive "
          "in float16. An update that overflows is left out and halves it; loss_scale_window without one double it. "
          "Left out: 65536 for float16, with [megatron] 2^32; none otherwise. 0 switches scaling off.")
      .range(0, 1e30)
      .elsewhere(
          "MMEngine: loss_scale, loss_scaler; llm-pytorch: grad_scaler; PyTorch: GradScaler, init_scale; Megatron-LM: "
          "--initial-loss-scale");
  list.advanced(ACCRUE_FIELD(optimizer.loss_scale_window), "Loss scale window",
                "Updates without an overflow after which the scale doubles.")
      .range(1, 1e9, "updates")
      .when(scales_loss)
      .elsewhere("PyTorch: growth_interval; Megatron-LM: --loss-scale-window");
  list.advanced(ACCRUE_FIELD(optimizer.loss_scale_hysteresis), "Loss scale hysteresis",
                "The overflow at which the scale is first halved, counted since it last doubled. Each one after it "
                "halves it again.")
      .range(1, 1e6, "overflows")
      .when(scales_loss)
      .elsewhere("Megatron-LM: --hysteresis");
  list.advanced(ACCRUE_FIELD(optimizer.min_loss_scale), "Lowest loss scale",
                "The scale never falls below it; an overflow there is treated as run.on_non_finite says. Left out: it "
                "falls as long as updates overflow.")
      .above(0, 1e30)
      .when(scales_loss)
      .elsewhere("Megatron-LM: --min-loss-scale");
}

void add_schedule_fields(FieldList& list) {
  list.add(ACCRUE_FIELD(schedule.kind), "Schedule",
           "How the learning rate moves. constant; linear and cosine fall to min_lr at the end; inverse-square-root "
           "falls after the warm-up; WSD stays at the peak and falls in its last part; exponential multiplies by gamma "
           "at every position.")
      .elsewhere("transformers: lr_scheduler_type; Megatron-LM: --lr-decay-style");
  list.add(ACCRUE_FIELD(schedule.clock), "Counts",
           "What a position of the schedule is. positions: one tick of accumulation.schedule_clock, which is an update "
           "unless the dialect counts otherwise. samples: one sample trained on, over all ranks, whatever the dialect "
           "counts; skipped updates do not count.")
      .elsewhere("Megatron-LM: --lr-decay-samples, --lr-warmup-samples");
  list.add(ACCRUE_FIELD(schedule.warmup), "Warm-up", "Positions over which the rate rises to its peak.")
      .range(0, 1e13, "schedule positions")
      .elsewhere("transformers: warmup_steps, num_warmup_steps; Megatron-LM: --lr-warmup-iters");
  list.advanced(ACCRUE_FIELD(schedule.warmup_fraction), "Warm-up, as a part",
                "Part of the schedule's length over which the rate rises, in place of a number of positions.")
      .range(0, 0.999999)
      .elsewhere("transformers: warmup_ratio; Megatron-LM: --lr-warmup-fraction");
  list.advanced(ACCRUE_FIELD(schedule.init_lr), "Rate at the start", "Where the warm-up of a samples clock starts.")
      .range(0, 1e6)
      .when([](const RunSpec& spec) { return spec.schedule.clock == RateClock::samples; })
      .elsewhere("Megatron-LM: --lr-warmup-init");
  list.add(ACCRUE_FIELD(schedule.min_lr), "Lowest rate",
           "The rate never falls below it, and linear, cosine and WSD end at it.")
      .range(0, 1e6)
      .when([](const RunSpec& spec) { return has_lowest_rate(spec.schedule.kind); })
      .elsewhere("Megatron-LM: --min-lr");
  list.add(ACCRUE_FIELD(schedule.gamma), "Gamma", "Factor per position of the exponential schedule.")
      .above(0, 1)
      .when([](const RunSpec& spec) { return spec.schedule.kind == ScheduleKind::exponential; })
      .elsewhere("PyTorch: gamma");
  list.add(ACCRUE_FIELD(schedule.decay_fraction), "Decaying part",
           "The part of a WSD schedule, at its end, in which the rate falls.")
      .above(0, 1)
      .when([](const RunSpec& spec) { return spec.schedule.kind == ScheduleKind::wsd; });
  list.add(ACCRUE_FIELD(schedule.decay_tail), "Decaying part falls", "How the rate falls at the end of WSD.")
      .when([](const RunSpec& spec) { return spec.schedule.kind == ScheduleKind::wsd; })
      .elsewhere("Megatron-LM: --lr-wsd-decay-style");
  list.advanced(ACCRUE_FIELD(schedule.total), "Length",
                "Positions at which linear, cosine and WSD end; in samples inverse-square-root too. Left out: as many "
                "as the run will tick, so it ends with the run.")
      .range(1, 1e13, "schedule positions")
      .when(schedule_has_total)
      .elsewhere("transformers: num_training_steps; PyTorch: total_steps; Megatron-LM: --lr-decay-iters");
}

}  // namespace accrue::field_detail
