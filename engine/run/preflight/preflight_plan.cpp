// SPDX-License-Identifier: Apache-2.0
// Checks that need the window: length of the run, filled windows, end of the schedule, memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/number_text.h"
#include "accrue/run/cost/model_share.h"
#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/plan/forecast.h"
#include "accrue/run/plan/idle_bug.h"
#include "kept_activations.h"
#include "memory_estimate.h"
#include "parameter_totals.h"
#include "plan_derivation.h"
#include "preflight_checks.h"
#include "spec_text.h"
#include "unfilled_groups.h"
#include "window_length.h"

namespace accrue::preflight_detail {

namespace {

// Upper bound of the run's micro-steps, without walking it.
double most_micro_steps(const RunSpec& spec, const SampleOrder& order) {
  const auto batches = static_cast<double>(order.batches_per_epoch());
  const AccumulationKnobs knobs = resolve_knobs(spec);
  double longest = static_cast<double>(steps_of(spec.accumulation, order.world));
  for (const LengthChange& change : spec.accumulation.knobs.length_schedule)
    longest = std::max(longest, static_cast<double>(change.steps));
  if (knobs.tail == EpochTail::flush) longest = std::min(longest, batches);
  const RunSection& run = spec.run;
  const double per_sample = batches / std::max(1.0, static_cast<double>(order.samples));
  if (run.epochs) return *run.epochs * (batches + (knobs.tail == EpochTail::pad_repeat ? longest : 0.0));
  if (run.samples) return static_cast<double>(*run.samples) * per_sample;
  if (run.tokens) return static_cast<double>(*run.tokens) * per_sample;
  if (!run.updates && spec.accumulation.max_iters) return static_cast<double>(*spec.accumulation.max_iters);
  return static_cast<double>(run.updates.value_or(updates_by_default)) * longest;
}

std::string limit_key(const RunSection& run) {
  if (run.epochs) return "run.epochs";
  if (run.samples) return "run.samples";
  if (run.tokens) return "run.tokens";
  return "run.updates";
}

void check_windows(const RunPlan& plan, Findings& findings) {
  const std::int64_t batches = plan.window.batches_per_epoch;
  const std::int64_t steps = plan.window.steps;
  const bool fixed =
      plan.knobs.group_length == GroupLength::fixed || plan.knobs.group_length == GroupLength::global_batch;
  const bool endless = plan.window.max_updates && !plan.window.max_epochs && !plan.window.max_micro_steps &&
                       plan.totals.updates < *plan.window.max_updates && plan.totals.left_over_micro_steps > 0;
  if (endless)
    return findings.error("accumulation.steps",
                          "after update " + std::to_string(plan.totals.updates) +
                              " no window is ever full again, so the run would never end",
                          steps, "windows that fill, or run.epochs as the limit");
  if (plan.totals.updates == 0) {
    const std::int64_t trained = plan.totals.micro_steps;
    const std::int64_t most = trained > 0 ? std::min(batches, trained) : batches;
    return findings.warn("accumulation.steps", "no window is ever full, so nothing is learned", steps,
                         "at most " + std::to_string(most), most);
  }
  if (fixed && batches < steps)
    findings.warn(
        "accumulation.steps",
        plan.knobs.tail == EpochTail::carry ? "a window is longer than an epoch, so updates see samples more than once"
                                            : "a window is longer than an epoch, so windows are never full",
        counted(steps, "micro-step"), "at most " + std::to_string(batches) + ", the micro-steps of an epoch", batches);
  if (drops_tail(plan.knobs) && plan.totals.dropped_batches > 0)
    findings.note("accumulation.steps",
                  "the run drops " + counted(plan.totals.dropped_batches, "micro-step") + " at the ends of its epochs");
  if (plan.totals.left_over_micro_steps > 0)
    findings.note("accumulation.steps", "the run ends with " +
                                            counted(plan.totals.left_over_micro_steps, "micro-step") +
                                            " whose gradients are never used in an update");
}

// Known behaviour of each dialect that its users do not expect.
void check_dialect(const RunPlan& plan, Findings& findings) {
  const bool tail = plan.tail_micro_steps > 0 && plan.totals.epochs_started > 1;
  if (plan.spec.accumulation.dialect == Dialect::llm && tail && plan.knobs.tail == EpochTail::carry)
    findings.note("accumulation.dialect", "windows cross epochs: an update of the second epoch uses " +
                                              counted(plan.tail_micro_steps, "micro-step") + " of the first");
  const auto& max_iters = plan.spec.accumulation.max_iters;
  if (!max_iters) return;
  WindowShape whole = plan.window;  // the run's own limit, without the boundary of max_iters
  whole.max_iters.reset();
  const std::int64_t micro_steps = total_windows(whole).micro_steps;
  if (micro_steps > *max_iters)
    findings.error("accumulation.max_iters", "ends the run's last window, but the run continues beyond it", *max_iters,
                   std::to_string(micro_steps) + ", the micro-steps of the run", micro_steps);
  else if (micro_steps < *max_iters)
    findings.note("accumulation.max_iters", "the run ends before it, after " + counted(micro_steps, "micro-step") +
                                                ", and its last window is not flushed");
}

// Reports a search that ended without success, or with other numbers than the spec's.
void check_memory_search(const RunPlan& plan, Findings& findings) {
  if (plan.knobs.group_length != GroupLength::memory_search) return;
  if (!cost_is_known(plan.spec))
    return findings.error("accumulation.group_length",
                          "searches by what a rank holds, which is not known of a plug-in library's model",
                          "memory_search", "\"fixed\"", "fixed");
  const auto& limit = plan.spec.accumulation.knobs.memory_limit;
  const double needed = static_cast<double>(plan.memory.total()) / 1048576.0;
  if (limit && needed > *limit)
    findings.error("accumulation.memory_limit",
                   "is less than a rank needs even with the smallest micro-batch that divides a window",
                   spec_detail::real_text(*limit) + " MiB",
                   "at least " + std::to_string(static_cast<std::int64_t>(std::ceil(needed))) + " MiB");
  else if (plan.order.micro_batch != plan.spec.accumulation.micro_batch)
    findings.note("accumulation.micro_batch",
                  "is more than a rank has room for: the run trains with micro-batches of " +
                      counted(plan.order.micro_batch, "sample") + " and N = " + std::to_string(plan.window.steps));
}

void check_overflows(const RunPlan& plan, Findings& findings) {
  for (const std::int64_t at : plan.spec.teaching.overflow_at)
    if (at > plan.totals.micro_steps)
      findings.warn("teaching.overflow_at", "lies beyond the end of the run", at,
                    "at most " + std::to_string(plan.totals.micro_steps) + ", the run's micro-steps");
}

// Reports a bug without effect, and what would give it one.
void check_bug_acts(const RunPlan& plan, Findings& findings) {
  const auto idle = idle_bug(plan);
  if (!idle) return;
  const std::string bug = quoted(plan.spec.teaching.bug);
  findings.note("teaching.bug", bug + " changes nothing in this run: " + idle->why);
  if (idle->key.empty()) return;
  findings.warn(idle->key, "gives " + bug + " nothing to act on: " + idle->why, idle->found, idle->expected, idle->fix);
}

void check_schedule(const RunPlan& plan, Findings& findings) {
  const ScheduleSpec& schedule = plan.spec.schedule;
  const bool samples = schedule.clock == RateClock::samples;
  const std::string_view unit = samples ? "sample" : "position";
  const std::int64_t ticks = plan.totals.schedule_ticks;
  if (samples && schedule.warmup >= plan.curve.total)
    return findings.error("schedule.warmup", "the warm-up leaves nothing of the schedule",
                          counted(schedule.warmup, unit), "less than " + std::to_string(plan.curve.total),
                          plan.curve.total / 10);
  if (schedule.warmup > ticks)
    findings.warn("schedule.warmup", "the warm-up is longer than the run, so the rate never reaches its peak",
                  counted(schedule.warmup, unit), "at most " + std::to_string(ticks), ticks / 10);
  if (!has_end(schedule.kind) || !schedule.total || *schedule.total == ticks) return;
  if (samples && schedule.total == plan.spec.megatron.train_samples) return;  // whose last partial update is dropped
  findings.warn("schedule.total",
                *schedule.total < ticks ? "the schedule ends before the run, which continues at the lowest rate"
                                        : "the run ends before the schedule, so the rate does not come down",
                counted(*schedule.total, unit), ticks, "");
}

void check_ramp(const RunPlan& plan, Findings& findings) {
  const auto& ramp = plan.window.rampup;
  if (ramp && batch_at(*ramp, plan.totals.samples) < ramp->full)
    findings.warn("accumulation.rampup", "the run ends before its updates have their full size",
                  counted(ramp->samples, "sample"), "less than " + std::to_string(plan.totals.samples));
}

/// The largest micro-batch below the plan's with which a rank needs at most `bytes` bytes; 0: none.
std::int64_t largest_micro_batch(const RunPlan& plan, std::int64_t bytes) {
  RunSpec spec = plan.spec;
  std::int64_t fits = 0, too_large = plan.order.micro_batch;
  while (too_large - fits > 1) {
    spec.accumulation.micro_batch = (fits + too_large) / 2;
    (estimate_memory(spec).total() <= bytes ? fits : too_large) = spec.accumulation.micro_batch;
  }
  return fits;
}

// Ranks of one host share its memory; each CUDA rank has its own device.
void check_memory(const RunPlan& plan, const HostFacts& host, Findings& findings) {
  const bool cuda = plan.spec.launch.device == DeviceKind::cuda;
  const std::int64_t share = memory_of_rank(plan.spec, host);
  if (share <= 0 || plan.memory.total() <= share) return;
  double available = static_cast<double>(host.memory_bytes);
  double needed = static_cast<double>(plan.memory.total()) * static_cast<double>(plan.grid.world());
  if (cuda && !host.cuda_devices.empty()) {
    available =
        static_cast<double>(std::ranges::min_element(host.cuda_devices, {}, &DeviceFacts::memory_bytes)->memory_bytes);
    needed = static_cast<double>(plan.memory.total());
  }
  const bool impossible = needed > available;
  // Micro-batches can be made smaller without changing the update.
  const std::int64_t fitting = largest_micro_batch(plan, share);
  const bool smaller = fitting >= 1;
  const char* size = is_transformer(plan.spec.model.kind) ? "model.width" : "model.kind";
  findings.add(impossible ? Severity::error : Severity::warning, smaller ? "accumulation.micro_batch" : size,
               impossible ? "the run does not fit into memory" : "the run leaves little memory for anything else",
               format_bytes(needed) + (cuda ? " a device" : " for all ranks"), "at most " + format_bytes(available),
               smaller ? Text(fitting) : Text());
}

void check_spared(const RunSpec& spec, Findings& findings) {
  if (spec.parallel.recompute != RecomputeKind::selective || spec.model.dropout > 0.0) return;
  findings.note("parallel.recompute",
                fmt::format("\"selective\" spares {:.1f} % of a block's activations here: without dropout no attention "
                            "weights are kept anyway",
                            100.0 * spared_of_a_block(spec)));
}

/// What a run is judged by must be measured before its end.
void check_measured(const RunPlan& plan, Findings& findings) {
  const std::int64_t updates = plan.totals.updates;
  if (plan.spec.evaluate.every_updates <= updates || updates == 0) return;
  for (const auto& [key, by] :
       {std::pair("run.stop_when", plan.spec.run.stop_when), std::pair("checkpoint.best", plan.spec.checkpoint.best)})
    if (by != RunMeasure::none)
      findings.error(key, "is never measured, since the run ends before its first evaluation", quoted(by),
                     "evaluate.every_updates at most " + std::to_string(updates) + ", or \"none\"", "none");
}

}  // namespace

void check_length(const RunSpec& spec, const DataFacts& data, Findings& findings) {
  const double most = most_micro_steps(spec, make_order(spec, data));
  if (most <= static_cast<double>(max_micro_steps_of_run)) return;
  findings.error(limit_key(spec.run), "the run is too long",
                 "up to " + counted(static_cast<std::int64_t>(std::min(most, 9e18)), "micro-step"),
                 "at most " + std::to_string(max_micro_steps_of_run));
}

/// Every bucket that reaches into a parameter cuts it, for each of the ranks that share it.
void check_shards(const RunPlan& plan, Findings& findings) {
  const ParallelSpec& parallel = plan.spec.parallel;
  if (parallel.zero == 0 || plan.gradient_buckets == 0) return;
  ModelSpec one_block = plan.spec.model;  // all blocks have the same parameters
  one_block.layers = one_block.decoder_layers.emplace() = parallel.pipeline * parallel.virtual_pipeline;
  std::int64_t largest = 0;
  for (const ParameterShare& each :
       parameter_shares(one_block, {.tensor_ranks = parallel.tensor, .parts = one_block.layers}))
    largest = std::max(largest, each.numel());
  const std::int64_t bucket = fullest_rank_totals(plan.spec.model, parallel).padded_numel / plan.gradient_buckets;
  const std::int64_t spanned = std::min(plan.gradient_buckets, largest / std::max<std::int64_t>(bucket, 1) + 2);
  if (spanned * parallel.data * parallel.tensor > most_tensor_parts)
    findings.error("parallel.bucket_mb", "cuts optimizer state into more parts than a checkpoint holds",
                   counted(plan.gradient_buckets, "bucket") + ", " + counted(parallel.data, "replica"),
                   "larger buckets");
}

void check_plan(const RunPlan& plan, const HostFacts& host, Findings& findings) {
  check_measured(plan, findings);
  check_shards(plan, findings);
  if (std::string text = unfilled_groups_text(plan); !text.empty())
    findings.note("parallel.virtual_pipeline", std::move(text));
  check_spared(plan.spec, findings);
  check_windows(plan, findings);
  check_dialect(plan, findings);
  check_schedule(plan, findings);
  check_ramp(plan, findings);
  check_memory_search(plan, findings);
  check_bug_acts(plan, findings);
  check_overflows(plan, findings);
  check_memory(plan, host, findings);
}

}  // namespace accrue::preflight_detail
