// SPDX-License-Identifier: Apache-2.0
// No setting is dropped silently, by construction: every set key is either in the list of keys that the target holds,
// or is reported. A script's own rule for windows is not assumed to match the plan's: both are walked side by side.
#include "export_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "accrue/run/base/number_text.h"
#include "accrue/run/data/dataset_sidecar.h"
#include "accrue/run/data/indexed_dataset.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/megatron/megatron_lowering.h"
#include "accrue/run/window/lr_curve.h"

namespace accrue::export_detail {

namespace {

constexpr std::int64_t most_checked_micro_steps = 200'000;

bool among(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::ranges::find(keys, key) != keys.end();
}

tl::unexpected<Error> refused(std::string_view key, std::string message, std::string hint = {}) {
  return fail(ErrorCode::config, std::move(message), std::string(key), std::move(hint));
}

/// The script's rule, one micro-step at a time.
class ScriptWalk {
 public:
  explicit ScriptWalk(const ScriptWindows& rule) : rule_(rule) {}
  struct Step {
    std::int64_t epoch = 0, batch = 0, position = 0;
    bool update = false;
  };
  Step next() {
    Step step{epoch_, batch_, position_};
    ++micro_steps_;
    const bool epoch_ends = batch_ + 1 == rule_.batches;
    step.update = position_ + 1 == rule_.steps || (rule_.flush && epoch_ends) || micro_steps_ == rule_.micro_steps;
    position_ = step.update ? 0 : position_ + 1;
    batch_ = epoch_ends ? 0 : batch_ + 1;
    epoch_ += epoch_ends ? 1 : 0;
    return step;
  }

 private:
  ScriptWindows rule_;
  std::int64_t epoch_ = 0, batch_ = 0, position_ = 0, micro_steps_ = 0;
};

/// Position of a script's schedule at an update; -1 if the scripts have no rule for the clock.
std::int64_t position_of(const RunPlan& plan, std::int64_t update) {
  switch (plan.knobs.schedule_clock) {
    case ScheduleClock::update:
    case ScheduleClock::every_nth_call:
      return update;
    case ScheduleClock::update_times_world: {
      const std::int64_t position = update * plan.order.world;
      return plan.knobs.total_guard && plan.window.schedule_total ? std::min(position, *plan.window.schedule_total)
                                                                  : position;
    }
    case ScheduleClock::micro_step:
    case ScheduleClock::external:
      return std::min((update + 1) * plan.window.steps, script_windows(plan).micro_steps) - 1;
    case ScheduleClock::epoch:
      break;
  }
  return -1;
}

/// Whether the script divides like MicroPlan.
bool divides_alike(const RunPlan& plan, const MicroPlan& micro) {
  if (micro.division.counts() || micro.division.by == Division::By::none) return true;
  const bool by_size =
      plan.knobs.normalizer == Normalizer::true_size || plan.knobs.normalizer == Normalizer::run_remainder;
  return micro.division.value == static_cast<double>(by_size ? micro.window_size : plan.window.steps);
}

Result<void> check_windows(const RunPlan& plan) {
  ScriptWalk script(script_windows(plan));
  AccumulationWindow window(plan.window);
  const std::int64_t held = script_windows(plan).micro_steps;
  std::int64_t updates = 0;
  for (std::int64_t i = 0; i < std::min(held, most_checked_micro_steps); ++i) {
    const auto micro = window.next();
    const ScriptWalk::Step step = script.next();
    const bool same = micro && micro->epoch == step.epoch && micro->batch == step.batch &&
                      micro->position == step.position && micro->update == step.update;
    if (!same || !divides_alike(plan, *micro))
      return refused("accumulation",
                     fmt::format("the windows of this spec follow a rule that a script does not have: the two part at "
                                 "micro-step {}",
                                 i + 1),
                     "Windows of one length, whose tail is carried, dropped or flushed, can be exported.");
    if (!micro->update) continue;
    if (micro->schedule_position - micro->schedule_ticks != position_of(plan, updates))
      return refused(
          "accumulation.schedule_clock",
          fmt::format("a script cannot move the schedule as this spec does: the two part at update {}", updates + 1),
          "Set accumulation.schedule_clock = \"update\".");
    ++updates;
  }
  return {};
}

Result<void> check_kinds(const RunSpec& spec) {
  const ModelKind model = spec.model.kind;
  if (model == ModelKind::bert || model == ModelKind::t5)
    return refused("model.kind", fmt::format("a script with a model of kind {} is not written", to_name(model)),
                   "linear, mlp and gpt can be exported.");
  if (spec.data.kind == DataKind::indexed)
    return refused("data.kind", "a script that reads an indexed dataset is not written",
                   "Use text, tokens, csv, inline or synthetic data, or export to megatron.");
  if (spec.data.validation_shuffle && spec.data.validation_fraction > 0)
    return refused("data.validation_shuffle", "a script trains on the first samples of the data, not on drawn ones",
                   "Set data.validation_shuffle = false, or name a data.validation_path.");
  if (!spec.data.sequences.empty())
    return refused("data.sequences", "a script with ragged sequences is not written", "Give data.x and data.y.");
  if (among(to_name(spec.optimizer.kind), {"FusedLAMB", "Lamb", "Lars"}))
    return refused("optimizer.kind", fmt::format("PyTorch has no {}", to_name(spec.optimizer.kind)),
                   "sgd, adam, adamw and Colossal-AI's Adams and SGD can be exported.");
  const bool adam = among(to_name(spec.optimizer.kind), {"CPUAdam", "FusedAdam", "HybridAdam"});
  if (adam && !spec.optimizer.bias_correction.value_or(true))
    return refused("optimizer.bias_correction", "PyTorch's Adam always corrects its bias");
  if (spec.optimizer.kind == OptimizerKind::fused_sgd && spec.optimizer.wd_after_momentum)
    return refused("optimizer.wd_after_momentum", "PyTorch's SGD adds the decay before the momentum");
  return {};
}

Result<void> check_rules(const RunPlan& plan) {
  const RunSpec& spec = plan.spec;
  if (spec.teaching.bug != Bug::none || !spec.teaching.overflow_at.empty() || !plan.knobs.replay.empty())
    return refused(spec.teaching.bug != Bug::none ? "teaching.bug"
                   : plan.knobs.replay.empty()    ? "teaching.overflow_at"
                                                  : "accumulation.replay",
                   "a deliberate fault is not exported", "Leave it out.");
  if (plan.curve.clock == RateClock::samples)
    return refused("schedule.clock", "a script's schedule does not count samples",
                   "Set schedule.clock = \"positions\".");
  if (plan.window.rampup)
    return refused("accumulation.rampup", "a script's windows have one length", "Leave the ramp-up out.");
  if (has_length_schedule(plan.knobs.group_length))
    return refused("accumulation.group_length", "a script's windows have one length");
  if (plan.knobs.reduce_when == ReduceWhen::never)
    return refused("accumulation.reduce_when", "a script's processes always reduce their gradients");
  if (plan.knobs.clip_stage == ClipStage::every_micro_step)
    return refused("accumulation.clip_stage", "a script clips before the update, not in every micro-step");
  if (plan.knobs.uneven_ranks == UnevenRanks::join)
    return refused("accumulation.uneven_ranks", "a script's ranks all have the same number of batches");
  return {};
}

/// Sections and keys that a script holds; a trailing dot means a whole section.
constexpr std::string_view held_by_scripts[] = {"model.",
                                                "data.",
                                                "optimizer.",
                                                "schedule.",
                                                "parallel.data",
                                                "launch.device",
                                                "launch.threads_per_rank",
                                                "run.updates",
                                                "run.epochs",
                                                "run.samples",
                                                "run.tokens",
                                                "run.seed",
                                                "run.name",
                                                "accumulation."};
/// Held by DeepSpeed's configuration and by Megatron-LM.
constexpr std::string_view held_by_both[] = {"accumulation.steps",
                                             "accumulation.micro_batch",
                                             "parallel.data",
                                             "parallel.zero",
                                             "optimizer.kind",
                                             "optimizer.lr",
                                             "optimizer.weight_decay",
                                             "optimizer.beta1",
                                             "optimizer.beta2",
                                             "optimizer.eps",
                                             "optimizer.momentum",
                                             "optimizer.clip_norm",
                                             "optimizer.loss_scale",
                                             "optimizer.loss_scale_window",
                                             "optimizer.loss_scale_hysteresis",
                                             "optimizer.min_loss_scale",
                                             "schedule.kind",
                                             "schedule.warmup",
                                             "schedule.warmup_fraction",
                                             "schedule.total",
                                             "model.dtype",
                                             "run.name"};
/// Held by Megatron-LM in addition.
constexpr std::string_view held_by_megatron_alone[] = {"model.kind",
                                                       "model.layers",
                                                       "model.width",
                                                       "model.heads",
                                                       "model.context",
                                                       "model.vocabulary",
                                                       "model.vocabulary_multiple",
                                                       "model.dropout",
                                                       "data.kind",
                                                       "data.paths",
                                                       "data.weights",
                                                       "data.split",
                                                       "data.cache",
                                                       "data.sampler",
                                                       "data.sharding",
                                                       "data.mask_end_of_document",
                                                       "data.reset_positions",
                                                       "data.reset_attention",
                                                       "optimizer.weight_decay_style",
                                                       "optimizer.start_weight_decay",
                                                       "optimizer.end_weight_decay",
                                                       "schedule.min_lr",
                                                       "schedule.decay_fraction",
                                                       "schedule.decay_tail",
                                                       "parallel.tensor",
                                                       "parallel.pipeline",
                                                       "parallel.virtual_pipeline",
                                                       "parallel.sequence",
                                                       "parallel.overlap_grad_reduce",
                                                       "parallel.overlap_param_gather",
                                                       "parallel.recompute",
                                                       "parallel.recompute_method",
                                                       "parallel.recompute_layers",
                                                       "parallel.distribute_saved_activations",
                                                       "parallel.data_parallel_random_init",
                                                       "launch.device",
                                                       "run.updates",
                                                       "run.epochs",
                                                       "run.samples",
                                                       "run.tokens",
                                                       "run.seed",
                                                       "run.tensorboard_dir",
                                                       "run.timer_level",
                                                       "run.parameter_norm",
                                                       "run.gradient_zeros",
                                                       "evaluate.every_updates",
                                                       "evaluate.batches",
                                                       "checkpoint.every_updates"};

bool is_in(std::span<const std::string_view> held, std::string_view key) {
  return std::ranges::any_of(
      held, [key](std::string_view each) { return each == key || (each.ends_with('.') && key.starts_with(each)); });
}

/// Keys of a held section that scripts do not hold, with the reason; empty: held after all.
std::string_view why_not_in_script(std::string_view key, const RunSpec& spec) {
  if (key == "model.dtype" && (spec.model.dtype == Dtype::bfloat16 || spec.model.dtype == Dtype::float16))
    return "the script trains in float32";
  if (key == "model.dropout") return "as much is dropped, by other random numbers, so losses are not the same";
  if (key == "model.label_smoothing") return "the script does not smooth its losses";
  if (key == "model.vocabulary_padding") return "the script's embedding has a row for each token and no more";
  if (among(key, {"optimizer.weight_decay_style", "optimizer.start_weight_decay", "optimizer.end_weight_decay"}))
    return "the decay is optimizer.weight_decay throughout";
  if (among(key, {"optimizer.decoupled_lr", "optimizer.decoupled_min_lr"}))
    return "the embeddings have the rate of all parameters";
  if (key.starts_with("optimizer.nvme_")) return "the optimizer's states stay in memory";
  if (key.starts_with("optimizer.loss_scale") || key == "optimizer.min_loss_scale")
    return "the script trains in float32, without a loss scale";
  if (key == "optimizer.kind" && spec.optimizer.kind > OptimizerKind::adamw)
    return "PyTorch's own optimizer of the same formula takes its place";
  if (among(key, {"accumulation.reduce_when", "accumulation.reduce_mechanism", "accumulation.no_sync_cover",
                  "accumulation.sync_each_batch"}))
    return "gradients are reduced in the last backward of a window, which gives the same sum";
  if (key == "accumulation.accumulation_dtype") return "gradients are summed in the parameters' type";
  if (key == "accumulation.overflow") return "a loss that is not finite ends the script";
  if (key == "accumulation.checkpoint_scope") return "the script saves no checkpoint";
  if (key == "accumulation.reported_loss") return "the script reports the loss that the gradient descends";
  return {};
}

bool is_script(CodeTarget target) {
  return target != CodeTarget::deepspeed && target != CodeTarget::megatron;
}

std::string_view why_of_section(std::string_view key, CodeTarget target) {
  if (key.starts_with("evaluate.")) return "nothing is evaluated";
  if (key.starts_with("checkpoint.")) return "no checkpoint is saved";
  if (among(key, {"run.stop_when", "run.patience", "run.least_improvement"}))
    return "the other tool trains to the planned end, however the loss develops";
  if (key.starts_with("launch.")) return "the launcher has settings of its own";
  if (key == "parallel.zero") return "every process keeps the whole optimizer state";
  if (key.starts_with("parallel.recompute") || key == "parallel.distribute_saved_activations")
    return "activations are kept, not computed again";
  if (among(key, {"parallel.backend", "parallel.bucket_mb"}) || key.starts_with("parallel.overlap"))
    return "how gradients travel is left to the other tool";
  if (key.starts_with("parallel."))
    return is_script(target) ? "every process holds the whole model; parallel.data of them train"
                             : "the other tool has no such layout";
  if (key.starts_with("megatron."))
    return "what the field stands for is in the ordinary keys, which are exported or named here";
  if (target == CodeTarget::deepspeed) {
    if (key.starts_with("model.") || key.starts_with("data."))
      return "DeepSpeed's configuration holds neither model nor data: they are the program's";
    if (key.starts_with("run.")) return "how long to train is decided by the program's loop";
    if (key.starts_with("schedule.")) return "DeepSpeed's schedulers have no such setting";
    if (key.starts_with("optimizer.")) return "DeepSpeed's configuration has no such setting";
    return "DeepSpeed divides the loss by gradient_accumulation_steps and knows no other rule";
  }
  if (target == CodeTarget::megatron) {
    if (key.starts_with("model.") || key.starts_with("optimizer.") || key.starts_with("schedule."))
      return "Megatron-LM has no argument for it, or another rule";
    if (key.starts_with("data.")) return "Megatron-LM reads indexed datasets alone, in its own order";
    if (key.starts_with("accumulation.")) return "Megatron-LM forms its windows by global_batch_size alone";
  }
  return "nothing on the other side stands for it";
}

bool holds(CodeTarget target, std::string_view key) {
  if (is_script(target)) return is_in(held_by_scripts, key);
  return is_in(held_by_both, key) || (target == CodeTarget::megatron && is_in(held_by_megatron_alone, key));
}

bool has_deepspeed_schedule(ScheduleKind kind) {
  return kind == ScheduleKind::constant || kind == ScheduleKind::linear || kind == ScheduleKind::cosine;
}

/// Whether DeepSpeed holds the lowest rate, which one of its schedules has.
bool holds_beyond_list(const RunPlan& plan, CodeTarget target, std::string_view key) {
  return target == CodeTarget::deepspeed && key == "schedule.min_lr" && plan.curve.kind == ScheduleKind::cosine;
}

std::string why_schedule(const RunPlan& plan, CodeTarget target) {
  const std::string start = "the warm-up starts at 0, where Accrue's first update already has peak / (warmup + 1)";
  if (target == CodeTarget::megatron) return start;
  if (!has_deepspeed_schedule(plan.curve.kind))
    return "DeepSpeed has no such schedule: there, the rate stays at its peak after the warm-up";
  return start + ", and a rate is in force one update later" +
         (plan.curve.kind == ScheduleKind::linear ? "; WarmupDecayLR ends at 0" : "");
}

/// Returns "bpe of vocab.json and merges.txt": the origin of a dataset's tokens according to its sidecar.
std::string tokenizer_text(const DatasetSidecar& sidecar) {
  std::string files;
  for (const TokenizerFile& file : sidecar.files) files += (files.empty() ? " of " : " and ") + file.path;
  return sidecar.tokenizer + files;
}

/// Whether a dataset has prompts.
bool has_prompts(const RunPlan& plan) {
  return std::ranges::any_of(plan.spec.data.paths, [&plan](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(prompts_path(plan.base_dir / path), ignored);
  });
}

/// Tokenizers of the datasets, each once.
std::string tokenizers_of(const RunPlan& plan) {
  std::set<std::string> all;
  for (const std::string& path : plan.spec.data.paths) {
    const auto sidecar = read_sidecar(plan.base_dir / path);
    all.insert(sidecar && *sidecar ? "the tokenizer " + tokenizer_text(**sidecar)
                                   : "what made the tokens of " + path + ", which no " + path + ".json names");
  }
  return joined(all);
}

/// Adds values that a target holds with another meaning, which would mislead.
void add_misleading(const RunPlan& plan, CodeTarget target, std::vector<NotCarried>& list) {
  const auto add = [&](std::string_view key, std::string why) {
    list.push_back({std::string(key), format_value(find_field(key)->get(plan.spec)), std::move(why)});
  };
  if (target != CodeTarget::deepspeed && target != CodeTarget::megatron) return;
  if (plan.spec.accumulation.micro_batch * plan.window.steps * plan.spec.parallel.data != plan.global_batch)
    add("accumulation.steps", fmt::format("an update here has {} samples", plan.global_batch));
  if (plan.tail_micro_steps > 0)
    add("accumulation.steps",
        fmt::format(
            "an epoch's last {} of {} micro-steps fill no window; what becomes of them is the other tool's rule",
            plan.tail_micro_steps, plan.window.batches_per_epoch));
  if (plan.curve.kind != ScheduleKind::constant || plan.curve.warmup > 0.0)
    add("schedule.kind", why_schedule(plan, target));
  const bool is_written = target == CodeTarget::megatron || has_deepspeed_schedule(plan.curve.kind);
  if (plan.spec.schedule.total && find_field("schedule.total")->applies(plan.spec) &&
      (!is_written || !schedule_updates(plan)))
    add("schedule.total", is_written ? "it is no whole number of updates: there, the schedule is as long as the run"
                                     : "DeepSpeed has no such schedule");
  if (target == CodeTarget::megatron && plan.spec.data.kind == DataKind::indexed)
    add("data.paths", fmt::format("the datasets are read, but the script has NullTokenizer, for which the vocabulary's "
                                  "last token ends a document, in place of {}",
                                  tokenizers_of(plan)));
  if (target == CodeTarget::megatron && has_prompts(plan))
    add("data.paths", "prompts have no part in the loss here; there they are text like any other");
  if (counts_items(plan.knobs))
    add("accumulation.dialect",
        "every micro-batch has the same weight there, whatever it holds; where all hold the same number of items that "
        "is "
        "the same");
  add("run.seed", "initial weights and the order of samples are the other tool's");
}

}  // namespace

ScriptWindows script_windows(const RunPlan& plan) {
  const std::int64_t length = plan.window.batches_per_epoch;
  return {.steps = plan.window.steps,
          .batches = drops_tail(plan.knobs) ? length - length % plan.window.steps : length,
          .micro_steps = plan.totals.micro_steps - plan.totals.left_over_micro_steps,
          .flush = plan.knobs.tail == EpochTail::flush};
}

Result<void> check_script(const RunPlan& plan) {
  if (auto known = check_kinds(plan.spec); !known) return known;
  if (auto possible = check_rules(plan); !possible) return possible;
  return check_windows(plan);
}

std::optional<std::int64_t> schedule_updates(const RunPlan& plan) {
  const std::int64_t ticks = plan.totals.schedule_ticks, updates = plan.totals.updates;
  if (plan.curve.total == ticks) return updates;
  std::int64_t product = 0;
  if (ticks <= 0 || __builtin_mul_overflow(plan.curve.total, updates, &product) || product % ticks != 0)
    return std::nullopt;
  return product / ticks;
}

std::vector<NotCarried> not_carried(const RunPlan& plan, CodeTarget target) {
  static const RunSpec defaults;
  std::vector<NotCarried> list;
  for (const SpecField& field : spec_fields()) {
    const SpecValue value = field.get(plan.spec);
    if (value == field.get(defaults) || !field.applies(plan.spec)) continue;
    std::string_view why;
    if (!holds(target, field.key) && !holds_beyond_list(plan, target, field.key))
      why = why_of_section(field.key, target);
    else if (is_script(target))
      why = why_not_in_script(field.key, plan.spec);
    if (!why.empty()) list.push_back({std::string(field.key), format_value(value), std::string(why)});
  }
  add_misleading(plan, target, list);
  return list;
}

}  // namespace accrue::export_detail
