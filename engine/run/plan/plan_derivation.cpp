// SPDX-License-Identifier: Apache-2.0
// Every derived number is either a product of the spec's numbers or comes from walking the window itself; nothing here
// repeats the window's rules, so the plan cannot promise what training will not do.
#include "plan_derivation.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "accrue/run/shard_layout.h"
#include "memory_estimate.h"
#include "parameter_totals.h"

namespace accrue {

std::int64_t steps_of(const AccumulationSpec& spec, std::int64_t world) {
  if (spec.knobs.group_length != GroupLength::global_batch) return spec.steps;
  const std::int64_t wanted = spec.knobs.global_batch.value_or(1);
  const std::int64_t micro = std::max<std::int64_t>(1, spec.micro_batch * world);
  switch (spec.knobs.batch_rounding.value_or(BatchRounding::error)) {
    case BatchRounding::fill:
      return (wanted + micro - 1) / micro;
    case BatchRounding::round:
      return std::max<std::int64_t>(1, (wanted + micro / 2) / micro);
    case BatchRounding::error:
      break;
  }
  return std::max<std::int64_t>(1, wanted / micro);
}

namespace {

/// The gradients of a rank, as they lie in memory and leave it.
struct GradientArena {
  std::int64_t parameters = 0;
  std::int64_t numel = 0;  ///< with the padding
  std::int64_t buckets = 0;
  std::int64_t element = 0;  ///< bytes of one number on the wire
};

GradientArena gradient_arena(const RunSpec& spec, const AccumulationKnobs& knobs) {
  GradientArena arena;
  const ParameterTotals totals = parameter_totals(spec.model);
  arena.parameters = totals.numel;
  arena.numel = totals.padded_numel;
  arena.element = bytes_of_sum(knobs.accumulation_dtype, dtype_bytes(spec.model.dtype));
  arena.buckets =
      bucket_count(arena.numel, arena.element, bucket_bytes(knobs.reduce_mechanism, spec.parallel.bucket_mb));
  return arena;
}

/// K1 memory_search: the largest micro-batch, not above the one asked for, with which a rank fits, such that a window
/// of whole micro-batches holds exactly the samples asked for. Halving first would miss sizes that divide otherwise.
RunSpec fitted_to_memory(RunSpec spec, std::int64_t memory_per_rank) {
  AccumulationSpec& accumulation = spec.accumulation;
  const AccumulationKnobs knobs = resolve_knobs(spec);
  if (knobs.group_length != GroupLength::memory_search) return spec;
  double limit = static_cast<double>(memory_per_rank);
  if (accumulation.knobs.memory_limit) limit = *accumulation.knobs.memory_limit * 1048576.0;
  if (limit <= 0) return spec;
  const GradientArena arena = gradient_arena(spec, knobs);
  const std::int64_t samples = accumulation.steps * accumulation.micro_batch;
  for (std::int64_t micro = accumulation.micro_batch; micro >= 1; --micro) {
    if (samples % micro != 0) continue;
    accumulation.micro_batch = micro;
    accumulation.steps = samples / micro;
    if (static_cast<double>(estimate_memory(spec, knobs, arena.parameters, arena.numel).total()) <= limit) break;
  }
  return spec;
}

/// Batches of an epoch that the dialect's loader hands out, where it keeps less than all of them.
std::int64_t batches_handed_out(const WindowShape& shape) {
  const std::int64_t length = shape.batches_per_epoch;
  if (!shape.knobs.replays(Replay::drain_early)) return length;
  return std::max<std::int64_t>(0, length - length % shape.steps - 1);
}

// What a micro-step adds to a clock, over all ranks.
using MicroStepSize = std::function<std::int64_t(const MicroPlan&)>;

MicroStepSize sample_counter(const SampleOrder& order) {
  const std::int64_t full = order.micro_batch * order.world;
  return [&order, full](const MicroPlan& micro) {
    return (micro.batch + 1) * full <= order.samples ? full : order.samples_in_batch(micro.batch);
  };
}

MicroStepSize token_counter(const SampleOrder& order, const DataFacts& data) {
  return [&order, &data](const MicroPlan& micro) {
    std::int64_t tokens = 0;
    for (std::int64_t rank = 0; rank < order.world; ++rank)
      for (const std::int64_t sample : order.batch(micro.epoch, micro.batch, rank))
        tokens += data.sample_tokens[static_cast<std::size_t>(sample)];
    return tokens;
  };
}

/// Samples of every batch but the last of an epoch.
std::int64_t full_batch(const SampleOrder& order) {
  return order.micro_batch * order.world;
}

/// Passes over so many full windows, or fewer; answers how many micro-steps those were.
std::int64_t skip_micro_steps(AccumulationWindow& window, std::int64_t windows) {
  const std::int64_t before = window.micro_steps_done();
  if (windows > 0) window.skip_full_windows(windows);
  return window.micro_steps_done() - before;
}

/// Most ticks that one window gives the schedule.
std::int64_t ticks_of_window(const WindowShape& shape) {
  if (shape.knobs.schedule_clock == ScheduleClock::update) return 1;
  if (shape.knobs.schedule_clock == ScheduleClock::update_times_world) return std::max<std::int64_t>(shape.world, 1);
  return std::max<std::int64_t>(largest_steps(shape), 1);
}

// Micro-steps after which a clock has reached its target. A clock of which all batches but an epoch's last add the same
// says how much that is; 0 where each adds its own. The last batch is never among the windows that are passed over.
std::int64_t micro_steps_until(WindowShape shape, std::int64_t target, const MicroStepSize& size, std::int64_t each) {
  shape.max_micro_steps = max_micro_steps_of_run;
  // The run's length is what is looked for: without one, the window would count through the longest run there is.
  if (!shape.max_iters && shape.knobs.normalizer == Normalizer::run_remainder) shape.max_iters = shape.max_micro_steps;
  AccumulationWindow window(std::move(shape));
  const std::int64_t longest = std::max<std::int64_t>(largest_steps(window.shape()), 1);
  for (std::int64_t done = 0; done < target;) {
    const auto micro = window.next();
    if (!micro) break;
    done += size(*micro);
    if (each == 0 || !micro->update || done >= target) continue;
    done += each * skip_micro_steps(window, (target - done - 1) / each / longest);
  }
  return std::max<std::int64_t>(1, window.micro_steps_done());
}

void limit_by_epochs(WindowShape& shape, double epochs) {
  const double whole = std::floor(epochs);
  if (whole == epochs) {
    shape.max_epochs = static_cast<std::int64_t>(epochs);
    return;
  }
  WindowShape before = shape;
  before.max_epochs = static_cast<std::int64_t>(whole);
  const double part = std::ceil((epochs - whole) * static_cast<double>(shape.batches_per_epoch) - 1e-9);
  WindowShape after = shape;
  after.max_epochs = static_cast<std::int64_t>(whole) + 1;
  // Batches that the last epoch drops never become micro-steps: the part must not reach for those of a further epoch.
  shape.max_micro_steps =
      std::min(total_windows(before).micro_steps + static_cast<std::int64_t>(part), total_windows(after).micro_steps);
}

void limit_run(const RunSpec& spec, const SampleOrder& order, const DataFacts& data, WindowShape& shape) {
  const RunSection& run = spec.run;
  if (run.updates) shape.max_updates = run.updates;
  if (run.epochs) limit_by_epochs(shape, *run.epochs);
  if (run.samples)
    shape.max_micro_steps = micro_steps_until(shape, *run.samples, sample_counter(order), full_batch(order));
  if (run.tokens && data.tokens_per_sample > 0) {
    const std::int64_t samples = (*run.tokens + data.tokens_per_sample - 1) / data.tokens_per_sample;
    shape.max_micro_steps = micro_steps_until(shape, samples, sample_counter(order), full_batch(order));
  } else if (run.tokens) {
    shape.max_micro_steps = micro_steps_until(shape, *run.tokens, token_counter(order, data), 0);
  }
  const bool limited = shape.max_updates || shape.max_epochs || shape.max_micro_steps;
  if (!limited && shape.max_iters)
    shape.max_micro_steps = shape.max_iters;
  else if (!limited)
    shape.max_updates = updates_by_default;
}

// The warm-up in every unit: what has been done when the schedule has left it.
void derive_warmup(RunPlan& plan) {
  if (plan.curve.warmup <= 0) return;
  const auto size = sample_counter(plan.order);
  AccumulationWindow window(plan.window);
  while (window.schedule_position() < plan.curve.warmup) {
    const auto micro = window.next();
    if (!micro) break;
    plan.warmup_samples += size(*micro);
    const std::int64_t left = plan.curve.warmup - window.schedule_position();
    if (micro->update && left > 0)
      plan.warmup_samples +=
          full_batch(plan.order) * skip_micro_steps(window, (left - 1) / ticks_of_window(window.shape()));
  }
  plan.warmup_updates = window.updates_done();
  plan.warmup_micro_steps = window.micro_steps_done();
}

void derive_traffic(RunPlan& plan) {
  const GradientArena arena = gradient_arena(plan.spec, plan.knobs);
  plan.parameter_count = arena.parameters;
  plan.gradient_buckets = arena.buckets;
  RunSpec fitted = plan.spec;
  fitted.accumulation.micro_batch = plan.order.micro_batch;
  plan.memory = estimate_memory(fitted, plan.knobs, plan.parameter_count, arena.numel);
  const std::int64_t once = all_reduce_wire_bytes(arena.numel * arena.element, plan.grid.data);
  if (plan.knobs.reduce_when == ReduceWhen::boundary) plan.wire_bytes_per_update = once;
  if (plan.knobs.reduce_when == ReduceWhen::every_micro_step) plan.wire_bytes_per_update = once * plan.window.steps;
}

}  // namespace

SampleOrder make_order(const RunSpec& spec, const DataFacts& data) {
  SampleOrder order;
  order.samples = data.samples;
  order.micro_batch = spec.accumulation.micro_batch;
  order.world = spec.parallel.data;
  order.shuffle = spec.data.shuffle;
  order.seed = static_cast<std::uint64_t>(spec.run.seed);
  order.uneven = resolve_knobs(spec).uneven_ranks;
  order.fill_alone = spec.teaching.bug == Bug::repeated_samples;
  order.split_batches = spec.accumulation.split_batches.value_or(false);
  return order;
}

WindowShape make_window(const RunSpec& spec, const SampleOrder& order, const DataFacts& data) {
  WindowShape shape;
  shape.knobs = resolve_knobs(spec);
  shape.steps = steps_of(spec.accumulation, order.world);
  shape.length_schedule = spec.accumulation.knobs.length_schedule;
  shape.batches_per_epoch = order.batches_per_epoch();
  shape.batches_per_epoch = batches_handed_out(shape);
  shape.world = order.world;
  if (shape.knobs.total_guard && has_end(spec.schedule.kind)) shape.schedule_total = spec.schedule.total;
  shape.max_iters = spec.accumulation.max_iters;
  limit_run(spec, order, data, shape);
  return shape;
}

RunPlan derive_plan(const PlanInputs& inputs) {
  RunPlan plan;
  plan.spec = inputs.spec;
  plan.base_dir = inputs.base_dir;
  plan.data = inputs.data;
  plan.backend = inputs.backend;
  plan.threads_per_rank = inputs.threads_per_rank;
  plan.grid = make_grid(plan.spec.parallel);
  plan.memory_per_rank = inputs.memory_per_rank;
  const RunSpec fitted = fitted_to_memory(plan.spec, inputs.memory_per_rank);
  plan.order = make_order(fitted, plan.data);
  plan.window = make_window(fitted, plan.order, plan.data);
  plan.knobs = plan.window.knobs;
  plan.totals = total_windows(plan.window);
  plan.curve = make_curve(plan.spec.optimizer, plan.spec.schedule, plan.totals.schedule_ticks);
  plan.global_batch = plan.order.micro_batch * plan.window.steps * plan.order.world;
  plan.tokens_per_update = plan.global_batch * plan.data.tokens_per_sample;
  plan.full_windows_per_epoch = plan.window.batches_per_epoch / plan.window.steps;
  plan.tail_micro_steps = plan.window.batches_per_epoch % plan.window.steps;
  derive_warmup(plan);
  derive_traffic(plan);
  return plan;
}

}  // namespace accrue
