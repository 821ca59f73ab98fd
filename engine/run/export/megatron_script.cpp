// SPDX-License-Identifier: Apache-2.0
// Source of the arguments: NVIDIA/Megatron-LM core 0.12.0, training/arguments.py. Those that megatron_arguments() knows
// are also listed there, and a test looks each of them up.
#include <fmt/format.h>

#include <cmath>

#include "accrue/run/facts/indexed_corpus.h"
#include "accrue/run/fields/choice_names.h"
#include "export_rules.h"
#include "other_formats.h"

namespace accrue::export_detail {

namespace {

/// Quotes for a POSIX shell.
std::string quoted(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                          "_-./,:+=") == std::string::npos;
  if (plain) return text;
  std::string result = "'";
  for (const char each : text) result += each == '\'' ? "'\\''" : std::string(1, each);
  return result + "'";
}

class Arguments {
 public:
  void flag(std::string_view name) { text_ += fmt::format("  --{}\n", name); }
  void flag_if(bool set, std::string_view name) {
    if (set) flag(name);
  }
  void add(std::string_view name, std::int64_t value) { text_ += fmt::format("  --{} {}\n", name, value); }
  void add(std::string_view name, double value) { text_ += fmt::format("  --{} {}\n", name, value); }
  void add(std::string_view name, const std::string& value) {
    text_ += fmt::format("  --{} {}\n", name, quoted(value));
  }
  /// Adds several words, which are quoted already.
  void words(std::string_view name, const std::string& values) { text_ += fmt::format("  --{} {}\n", name, values); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

Result<std::string> decay_style(const RunPlan& plan) {
  switch (plan.curve.kind) {
    case ScheduleKind::constant:
    case ScheduleKind::linear:
    case ScheduleKind::cosine:
    case ScheduleKind::inverse_square_root:
      return std::string(to_name(plan.curve.kind));
    case ScheduleKind::wsd:
      return std::string("WSD");
    case ScheduleKind::exponential:
      break;
  }
  return fail(ErrorCode::config, "Megatron-LM has no exponential schedule", "schedule.kind");
}

void add_model(Arguments& list, const RunPlan& plan) {
  const ModelSpec& model = plan.spec.model;
  list.add("num-layers", model.layers);
  list.add("hidden-size", model.width);
  list.add("num-attention-heads", model.heads);
  list.add("seq-length", model.context);
  list.add("max-position-embeddings", model.context);
  // The null tokenizer adds the end of a document, which is a token here.
  list.add("vocab-size", model.vocabulary - 1);
  list.add("make-vocab-size-divisible-by", model.vocabulary_multiple);
  list.add("position-embedding-type", std::string("learned_absolute"));
  list.add("normalization", std::string("LayerNorm"));
  list.add("hidden-dropout", model.dropout);
  list.add("attention-dropout", model.dropout);
  list.flag_if(model.dtype == Dtype::bfloat16, "bf16");
  list.flag_if(model.dtype == Dtype::float16, "fp16");
  if (model.dtype != Dtype::float16) return;
  const OptimizerSpec& optimizer = plan.spec.optimizer;
  // Megatron-LM's default would be 2^32.
  if (const double first = optimizer.loss_scale.value_or(usual_loss_scale); first > 0.0)
    list.add("initial-loss-scale", first);
  list.add("loss-scale-window", optimizer.loss_scale_window);
  list.add("hysteresis", optimizer.loss_scale_hysteresis);
  if (optimizer.min_loss_scale) list.add("min-loss-scale", *optimizer.min_loss_scale);
}

Result<void> add_optimizer(Arguments& list, const RunPlan& plan) {
  const OptimizerSpec& optimizer = plan.spec.optimizer;
  const bool adam = optimizer.kind == OptimizerKind::adamw ||
                    ((optimizer.kind == OptimizerKind::cpu_adam || optimizer.kind == OptimizerKind::fused_adam ||
                      optimizer.kind == OptimizerKind::hybrid_adam) &&
                     optimizer.adamw_mode);
  if (!adam && optimizer.kind != OptimizerKind::sgd)
    return fail(ErrorCode::config, fmt::format("Megatron-LM has no {}: its adam is AdamW", to_name(optimizer.kind)),
                "optimizer.kind", "Use adamw or sgd.");
  list.add("optimizer", std::string(adam ? "adam" : "sgd"));
  list.add("lr", plan.curve.lr);
  list.add("weight-decay", optimizer.weight_decay);
  if (optimizer.weight_decay_style != WeightDecayStyle::constant) {
    list.add("weight-decay-incr-style", std::string(to_name(optimizer.weight_decay_style)));
    list.add("start-weight-decay", plan.weight_decay.start);
    list.add("end-weight-decay", plan.weight_decay.end);
  }
  if (adam) {
    list.add("adam-beta1", optimizer.beta1);
    list.add("adam-beta2", optimizer.beta2);
    list.add("adam-eps", epsilon_of(optimizer));
  } else {
    list.add("sgd-momentum", optimizer.momentum);
  }
  list.add("clip-grad", optimizer.clip_norm);
  const auto style = decay_style(plan);
  if (!style) return tl::unexpected(style.error());
  list.add("lr-decay-style", *style);
  if (has_lowest_rate(plan.curve.kind)) list.add("min-lr", plan.curve.min_lr);
  const std::int64_t length = schedule_updates(plan).value_or(plan.totals.updates);
  list.add("lr-decay-iters", length);
  if (plan.curve.kind == ScheduleKind::wsd) {
    const bool square_root = plan.curve.decay_tail == DecayTail::minus_square_root;
    list.add("lr-wsd-decay-style", std::string(square_root ? "minus_sqrt" : to_name(plan.curve.decay_tail)));
    list.add("lr-wsd-decay-iters",
             static_cast<std::int64_t>(std::llround(plan.curve.decay_fraction * static_cast<double>(length))));
  }
  if (plan.warmup_updates > 0) list.add("lr-warmup-iters", plan.warmup_updates);
  return {};
}

void add_ranks(Arguments& list, const RunPlan& plan) {
  const ParallelSpec& parallel = plan.spec.parallel;
  list.add("micro-batch-size", plan.order.micro_batch);
  list.add("global-batch-size", plan.order.micro_batch * plan.window.steps * plan.order.world);
  list.add("train-iters", plan.totals.updates);
  list.add("tensor-model-parallel-size", parallel.tensor);
  list.add("pipeline-model-parallel-size", parallel.pipeline);
  if (parallel.virtual_pipeline > 1)
    list.add("num-layers-per-virtual-pipeline-stage",
             plan.spec.model.layers / (parallel.pipeline * parallel.virtual_pipeline));
  list.flag_if(parallel.sequence, "sequence-parallel");
  list.flag_if(parallel.zero > 0, "use-distributed-optimizer");
  list.flag_if(parallel.overlap_grad_reduce, "overlap-grad-reduce");
  list.flag_if(parallel.zero > 0 && parallel.overlap_param_gather, "overlap-param-gather");
  list.flag_if(parallel.data_parallel_random_init, "data-parallel-random-init");
  if (parallel.recompute != RecomputeKind::none) {
    list.add("recompute-granularity", std::string(to_name(parallel.recompute)));
    if (parallel.recompute == RecomputeKind::full) {
      list.add("recompute-method", std::string(to_name(parallel.recompute_method)));
      list.add("recompute-num-layers", parallel.recompute_layers);
      list.flag_if(parallel.distribute_saved_activations, "distribute-saved-activations");
    }
  }
  list.add("distributed-backend", std::string(plan.spec.launch.device == DeviceKind::cuda ? "nccl" : "gloo"));
  list.add("seed", plan.spec.run.seed);
}

void add_data(Arguments& list, const RunPlan& plan) {
  const DataSpec& data = plan.spec.data;
  if (data.kind != DataKind::indexed) {
    list.flag("mock-data");
    list.add("tokenizer-type", std::string("NullTokenizer"));
    return;
  }
  std::string paths;
  for (std::size_t i = 0; i < data.paths.size(); ++i) {
    if (i < data.weights.size()) paths += fmt::format("{} ", data.weights[i]);
    paths +=
        quoted((plan.base_dir / data.paths[i]).lexically_normal().string()) + (i + 1 < data.paths.size() ? " " : "");
  }
  list.words("data-path", paths);
  list.add("split", data.split);
  if (!data.cache.empty()) list.add("data-cache-path", (plan.base_dir / data.cache).lexically_normal().string());
  if (is_cyclic(data)) list.add("dataloader-type", std::string("cyclic"));
  list.flag_if(is_cyclic(data) && !data.sharding, "no-data-sharding");
  list.flag_if(data.mask_end_of_document, "eod-mask-loss");
  list.flag_if(data.reset_positions, "reset-position-ids");
  list.flag_if(data.reset_attention, "reset-attention-mask");
  list.add("tokenizer-type", std::string("NullTokenizer"));
}

void add_reports(Arguments& list, const RunPlan& plan) {
  const RunSpec& spec = plan.spec;
  list.add("log-interval", std::int64_t{1});
  list.add("eval-interval", spec.evaluate.every_updates > 0 ? spec.evaluate.every_updates : plan.totals.updates + 1);
  list.add("eval-iters", spec.evaluate.every_updates > 0 ? spec.evaluate.batches : std::int64_t{0});
  if (spec.checkpoint.every_updates > 0) list.add("save-interval", spec.checkpoint.every_updates);
  list.flag_if(spec.run.parameter_norm, "log-params-norm");
  list.flag_if(spec.run.gradient_zeros, "log-num-zeros-in-grad");
  if (spec.run.tensorboard_dir.empty()) return;
  list.add("tensorboard-dir", (plan.base_dir / spec.run.tensorboard_dir).lexically_normal().string());
  list.flag_if(spec.run.timer_level > 0, "log-timers-to-tensorboard");
  list.add("timing-log-level", spec.run.timer_level);
}

}  // namespace

Result<std::string> megatron_script(const RunPlan& plan, const std::vector<NotCarried>& missing) {
  if (plan.spec.model.kind != ModelKind::gpt)
    return fail(
        ErrorCode::config,
        fmt::format("a script of Megatron-LM with a model of kind {} is not written", to_name(plan.spec.model.kind)),
        "model.kind", "A gpt can be exported.");
  if (plan.spec.model.dtype == Dtype::float64)
    return fail(ErrorCode::config, "Megatron-LM has no float64", "model.dtype", "Set model.dtype = \"float32\".");
  if (plan.window.rampup || has_length_schedule(plan.knobs.group_length))
    return fail(ErrorCode::config, "windows of several lengths are not exported", "accumulation.rampup");
  Arguments list;
  add_model(list, plan);
  if (auto known = add_optimizer(list, plan); !known) return tl::unexpected(known.error());
  add_ranks(list, plan);
  add_data(list, plan);
  add_reports(list, plan);
  const std::string text = "#!/bin/sh\n" + commented(head_lines(plan, CodeTarget::megatron, missing));
  std::string arguments = list.text();
  for (auto at = arguments.find('\n'); at != std::string::npos && at + 1 < arguments.size();
       at = arguments.find('\n', at + 3))
    arguments.replace(at, 1, " \\\n");
  return text + fmt::format(
                    "# Run it in a checkout of Megatron-LM.\nset -eu\nexec torchrun --standalone --nproc-per-node {} "
                    "pretrain_gpt.py \\\n{}",
                    plan.grid.world(), arguments);
}

}  // namespace accrue::export_detail
