// SPDX-License-Identifier: Apache-2.0
// Checks of [optimizer] and [schedule]: ordered rates and decays, keys that need each other, parameter names that must
// match, and exclusions of a schedule in samples.
#include <algorithm>

#include "accrue/run/cost/parameter_groups.h"
#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/fields/spec_fields.h"
#include "preflight_checks.h"
#include "spec_text.h"

namespace accrue::preflight_detail {

namespace {

using spec_detail::real_text;

void check_rates(const RunSpec& spec, Findings& findings) {
  const ScheduleSpec& schedule = spec.schedule;
  const std::string lr = real_text(spec.optimizer.lr);
  if (has_lowest_rate(schedule.kind) && schedule.min_lr > spec.optimizer.lr)
    findings.error("schedule.min_lr", "is above the learning rate", real_text(schedule.min_lr),
                   "at most optimizer.lr = " + lr, lr);
  if (schedule.clock != RateClock::samples && schedule.init_lr != 0.0)
    findings.error("schedule.init_lr", "has an effect only with schedule.clock = \"samples\"",
                   real_text(schedule.init_lr), "0", "0");
  else if (schedule.init_lr > spec.optimizer.lr)
    findings.error("schedule.init_lr", "is above the learning rate, to which the warm-up rises",
                   real_text(schedule.init_lr), "at most optimizer.lr = " + lr, lr);
}

void check_warmup(const ScheduleSpec& schedule, Findings& findings) {
  if (schedule.warmup_fraction && schedule.warmup > 0)
    return findings.error("schedule.warmup_fraction", "only one key may set the warm-up",
                          real_text(*schedule.warmup_fraction) + " beside schedule.warmup",
                          "one of warmup and warmup_fraction", "");
  const bool samples = schedule.clock == RateClock::samples;
  if (!samples && has_end(schedule.kind) && schedule.total && schedule.warmup >= *schedule.total)
    findings.warn("schedule.warmup", "the warm-up is as long as the schedule, so the rate never falls along its curve",
                  schedule.warmup, "less than schedule.total = " + std::to_string(*schedule.total));
}

// Options that a schedule in samples excludes.
void check_clock(const RunSpec& spec, Findings& findings) {
  if (spec.schedule.clock != RateClock::samples) return;
  const AccumulationSpec& accumulation = spec.accumulation;
  if (spec.schedule.kind == ScheduleKind::exponential)
    findings.error("schedule.clock", "counts samples, and an exponential schedule multiplies by gamma at each of them",
                   "\"samples\"", "\"positions\"", "positions");
  if (accumulation.knobs.schedule_clock)
    findings.error("accumulation.schedule_clock", "says when a position ticks, and schedule.clock counts samples",
                   quoted(*accumulation.knobs.schedule_clock), "only one of the two keys", "");
  if (accumulation.step_scheduler_with_optimizer == false)
    findings.error("accumulation.step_scheduler_with_optimizer",
                   "moves the schedule at every call, and schedule.clock counts the samples of updates", "false",
                   "only one of the two keys", "");
  if (std::ranges::find(accumulation.replay, "adjust_scheduler") != accumulation.replay.end())
    findings.error("accumulation.replay", "\"adjust_scheduler\" adds ticks, and schedule.clock counts samples",
                   "\"adjust_scheduler\"", "schedule.clock = \"positions\", or a list without it");
  const ScheduleClock own = resolve_knobs(accumulation).schedule_clock;
  if (own != ScheduleClock::update && !accumulation.knobs.schedule_clock)
    findings.note("schedule.clock",
                  "counts samples, so the dialect's own clock (" + std::string(to_name(own)) + ") does not apply");
}

void check_decay(const OptimizerSpec& optimizer, Findings& findings) {
  const auto& start = optimizer.start_weight_decay;
  const auto& end = optimizer.end_weight_decay;
  if (optimizer.weight_decay_style == WeightDecayStyle::constant) {
    for (const auto& [key, value] :
         {std::pair("optimizer.start_weight_decay", start), std::pair("optimizer.end_weight_decay", end)})
      if (value)
        findings.error(key, "has no effect: optimizer.weight_decay_style is \"constant\"", real_text(*value),
                       "weight_decay_style = \"linear\" or \"cosine\"", "");
    return;
  }
  for (const auto& [key, value] :
       {std::pair("optimizer.start_weight_decay", start), std::pair("optimizer.end_weight_decay", end)})
    if (!value)
      findings.error(key, "is missing, and optimizer.weight_decay_style needs it", {}, "a weight decay",
                     real_text(key == std::string_view("optimizer.start_weight_decay")
                                   ? std::min(optimizer.weight_decay, end.value_or(optimizer.weight_decay))
                                   : std::max(optimizer.weight_decay, start.value_or(optimizer.weight_decay))));
  if (start && end && *end < *start)
    findings.error("optimizer.end_weight_decay", "is below the start, and weight decay only grows", real_text(*end),
                   "at least optimizer.start_weight_decay = " + real_text(*start), real_text(*start));
  if (start && end && optimizer.weight_decay != 0.0)
    findings.note("optimizer.weight_decay",
                  "changes nothing here: it moves from start_weight_decay to "
                  "end_weight_decay");
}

void check_embedding_rate(const RunSpec& spec, Findings& findings) {
  const OptimizerSpec& optimizer = spec.optimizer;
  if (!optimizer.decoupled_lr) {
    if (optimizer.decoupled_min_lr)
      findings.error("optimizer.decoupled_min_lr", "has an effect only with optimizer.decoupled_lr",
                     real_text(*optimizer.decoupled_min_lr), "optimizer.decoupled_lr too", "");
    return;
  }
  if (!is_transformer(spec.model.kind))
    findings.error("optimizer.decoupled_lr", "is the rate of the token embedding, and this model has none",
                   "model.kind = " + quoted(spec.model.kind), "optimizer.scaled_lr, for parameters by name", "");
  if (std::ranges::find(spec.accumulation.replay, "scheduler_state") != spec.accumulation.replay.end())
    findings.error("optimizer.decoupled_lr",
                   "cannot be combined with replay of \"scheduler_state\": that freezes one rate",
                   real_text(*optimizer.decoupled_lr), "only one of the two keys", "");
  const double lowest = optimizer.decoupled_min_lr.value_or(spec.schedule.min_lr);
  if (has_lowest_rate(spec.schedule.kind) && lowest > *optimizer.decoupled_lr)
    findings.error("optimizer.decoupled_min_lr", "is above the rate of the embeddings", real_text(lowest),
                   "at most optimizer.decoupled_lr = " + real_text(*optimizer.decoupled_lr),
                   real_text(*optimizer.decoupled_lr));
}

// A name that matches no parameter would silently have no effect.
void check_names(const RunSpec& spec, Findings& findings) {
  const OptimizerSpec& optimizer = spec.optimizer;
  const std::vector<std::string> none;
  const auto check = [&](const char* key, const std::vector<std::string>& globs) {
    if (globs.empty()) return;
    const std::vector<ParameterShape> parameters = parameter_shapes(spec.model);
    for (const std::string& glob : globs)
      if (std::ranges::none_of(parameters, [&](const ParameterShape& each) { return matches(glob, each.name); }))
        findings.error(key, "no parameter of this model has such a name", "\"" + glob + "\"",
                       "names as \"" + parameters.front().name + "\", with * for any characters");
  };
  check("optimizer.no_decay", optimizer.no_decay.value_or(none));
  check("optimizer.scaled_lr", optimizer.scaled_lr);
  if (optimizer.scaled_lr.empty() && optimizer.lr_mult != 1.0)
    findings.error("optimizer.lr_mult", "has an effect only with optimizer.scaled_lr", real_text(optimizer.lr_mult),
                   "names in optimizer.scaled_lr", "1");
  if (!optimizer.scaled_lr.empty() && optimizer.lr_mult == 1.0)
    findings.note("optimizer.scaled_lr", "changes nothing here: optimizer.lr_mult is 1");
}

void check_loss_scale(const RunSpec& spec, Findings& findings) {
  const OptimizerSpec& optimizer = spec.optimizer;
  const OptimizerSpec usual;
  const bool half = spec.model.dtype == Dtype::float16;
  const bool scaled = optimizer.loss_scale ? *optimizer.loss_scale > 0.0 : half;
  if (scaled && optimizer.loss_scale && optimizer.min_loss_scale.value_or(0.0) > *optimizer.loss_scale)
    findings.error("optimizer.min_loss_scale", "is above the first loss scale", real_text(*optimizer.min_loss_scale),
                   "at most optimizer.loss_scale = " + real_text(*optimizer.loss_scale),
                   real_text(*optimizer.loss_scale));
  if (scaled) return;
  for (const auto& [key, set] :
       {std::pair("optimizer.loss_scale_window", optimizer.loss_scale_window != usual.loss_scale_window),
        std::pair("optimizer.loss_scale_hysteresis", optimizer.loss_scale_hysteresis != usual.loss_scale_hysteresis),
        std::pair("optimizer.min_loss_scale", optimizer.min_loss_scale.has_value())})
    if (set) findings.note(key, "changes nothing here: losses are not scaled");
}

/// Finds settings of another optimizer's rule.
void check_rule_settings(const RunSpec& spec, Findings& findings) {
  static constexpr const char* keys[] = {
      "optimizer.dampening",  "optimizer.nesterov", "optimizer.wd_after_momentum",     "optimizer.bias_correction",
      "optimizer.adamw_mode", "optimizer.adam",     "optimizer.max_grad_norm",         "optimizer.grad_averaging",
      "optimizer.use_nvlamb", "optimizer.eeta",     "optimizer.nvme_offload_fraction", "optimizer.nvme_offload_dir"};
  const RunSpec usual;
  for (const char* const key : keys) {
    const SpecField& field = *find_field(key);
    if (field.applies(spec) || field.get(spec) == field.get(usual)) continue;
    if (field.key == "optimizer.max_grad_norm") {
      findings.note(key, "changes nothing here: it is FusedLAMB's own clipping, and " +
                             std::string(to_name(spec.optimizer.kind)) + " clips by optimizer.clip_norm");
      continue;
    }
    const bool folder = field.key == "optimizer.nvme_offload_dir" && spec.optimizer.nvme_offload_fraction == 0.0;
    findings.note(
        key, folder ? "changes nothing here: optimizer.nvme_offload_fraction is 0"
                    : "changes nothing here: " + std::string(to_name(spec.optimizer.kind)) + " has no such setting");
  }
}

void check_fused_sgd(const OptimizerSpec& optimizer, Findings& findings) {
  if (optimizer.kind != OptimizerKind::fused_sgd) return;
  if (optimizer.nesterov && optimizer.momentum == 0.0)
    findings.error("optimizer.nesterov", "looks ahead along the momentum, and there is none", "true",
                   "a momentum above 0", "false");
  if (optimizer.nesterov && optimizer.dampening != 0.0)
    findings.error("optimizer.dampening", "cannot be combined with Nesterov's momentum", real_text(optimizer.dampening),
                   "0", "0");
  else if (optimizer.dampening != 0.0 && optimizer.momentum == 0.0)
    findings.note("optimizer.dampening", "changes nothing here: optimizer.momentum is 0");
  if (optimizer.wd_after_momentum && optimizer.momentum == 0.0)
    findings.note("optimizer.wd_after_momentum", "changes nothing here: optimizer.momentum is 0");
}

void check_epsilon(const OptimizerSpec& optimizer, Findings& findings) {
  if (optimizer.eps == 0.0 && optimizer.kind != OptimizerKind::lars)
    findings.error("optimizer.eps", "must be above 0: a step divides by the root of a moment, which may be 0", "0",
                   "a number above 0", "");
}

void check_offload(const RunSpec& spec, Findings& findings) {
  const OptimizerSpec& optimizer = spec.optimizer;
  if (!keeps_states_in_files(optimizer) || optimizer.nvme_offload_fraction == 0.0) return;
  if (spec.launch.device != DeviceKind::cpu)
    findings.error("optimizer.nvme_offload_fraction", "is for states on the CPU, and these are on a device",
                   real_text(optimizer.nvme_offload_fraction), "launch.device = \"cpu\", or 0", "0");
  if (optimizer.nvme_offload_dir.empty())
    findings.error("optimizer.nvme_offload_dir", "is missing, and optimizer.nvme_offload_fraction needs it", {},
                   "an absolute path");
  else if (!optimizer.nvme_offload_dir.starts_with('/'))
    findings.error("optimizer.nvme_offload_dir", "is relative, and ranks may start anywhere",
                   "\"" + optimizer.nvme_offload_dir + "\"", "an absolute path");
}

void check_two_clippings(const OptimizerSpec& optimizer, Findings& findings) {
  if (optimizer.kind == OptimizerKind::fused_lamb && optimizer.clip_norm > 0.0 && optimizer.max_grad_norm > 0.0)
    findings.note("optimizer.max_grad_norm", optimizer.clip_norm <= optimizer.max_grad_norm
                                                 ? "changes nothing here: optimizer.clip_norm clips at least as much"
                                                 : "clips what optimizer.clip_norm has left");
}

}  // namespace

void check_optimizer(const RunSpec& spec, Findings& findings) {
  check_rates(spec, findings);
  check_warmup(spec.schedule, findings);
  check_clock(spec, findings);
  check_decay(spec.optimizer, findings);
  check_embedding_rate(spec, findings);
  check_names(spec, findings);
  check_loss_scale(spec, findings);
  check_rule_settings(spec, findings);
  check_fused_sgd(spec.optimizer, findings);
  check_epsilon(spec.optimizer, findings);
  check_offload(spec, findings);
  check_two_clippings(spec.optimizer, findings);
}

}  // namespace accrue::preflight_detail
