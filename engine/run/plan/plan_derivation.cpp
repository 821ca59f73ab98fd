// SPDX-License-Identifier: Apache-2.0
// Every derived number is either a product of the spec's numbers or comes from walking the window itself. Nothing here
// repeats the window's rules, so the plan agrees with training.
#include "plan_derivation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "accrue/run/cost/model_share.h"
#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/facts/indexed_corpus.h"
#include "accrue/run/plan/forecast.h"
#include "accrue/run/window/pipeline_schedule.h"
#include "memory_estimate.h"
#include "parameter_totals.h"
#include "window_length.h"
#include "window_walk.h"

namespace accrue {

namespace {

/// Elements of a token embedding whose two copies are on different stages: under ZeRO it shares no bucket.
std::int64_t tied_numel(const RunSpec& spec) {
  const ParallelSpec& parallel = spec.parallel;
  if (parallel.pipeline == 1 || !is_transformer(spec.model.kind)) return 0;
  ModelSpec one_block = spec.model;
  one_block.layers = one_block.decoder_layers.emplace() = parallel.pipeline;
  return padded_numel(
      parameter_shares(one_block, {.tensor_ranks = parallel.tensor, .parts = parallel.pipeline}).front().numel());
}

/// Buckets of the rank with the most parameters.
std::int64_t bucket_count_of(const RunSpec& spec, const AccumulationKnobs& knobs) {
  const std::int64_t element = bytes_of_sum(knobs.accumulation_dtype, dtype_bytes(spec.model.dtype));
  const std::int64_t bytes = bucket_bytes(knobs.reduce_mechanism, spec.parallel.bucket_mb);
  const std::int64_t shards = spec.parallel.zero > 0 ? spec.parallel.data : 1;
  const std::int64_t alone = spec.parallel.zero > 0 ? tied_numel(spec) : 0;
  const std::int64_t numel = fullest_rank_totals(spec.model, spec.parallel).padded_numel;
  return bucket_count(numel - alone, element, bytes, shards) + bucket_count(alone, element, bytes, shards);
}

/// K1 memory_search: the largest micro-batch, up to the spec's, that fits a rank's memory and with which whole
/// micro-batches give exactly the spec's samples per window. Halving would miss other divisors.
RunSpec fitted_to_memory(RunSpec spec, std::int64_t memory_per_rank) {
  AccumulationSpec& accumulation = spec.accumulation;
  const AccumulationKnobs knobs = resolve_knobs(spec);
  if (knobs.group_length != GroupLength::memory_search || !cost_is_known(spec)) return spec;
  double limit = static_cast<double>(memory_per_rank);
  if (accumulation.knobs.memory_limit) limit = *accumulation.knobs.memory_limit * 1048576.0;
  if (limit <= 0) return spec;
  const std::int64_t samples = accumulation.steps * accumulation.micro_batch;
  for (std::int64_t micro = accumulation.micro_batch; micro >= 1; --micro) {
    if (samples % micro != 0) continue;
    accumulation.micro_batch = micro;
    accumulation.steps = samples / micro;
    if (static_cast<double>(estimate_memory(spec).total()) <= limit) break;
  }
  return spec;
}

/// Batches of an epoch that the dialect's loader yields, if it keeps less than all of them.
std::int64_t batches_handed_out(const WindowShape& shape) {
  const std::int64_t length = shape.batches_per_epoch;
  if (!shape.knobs.replays(Replay::drain_early)) return length;
  return std::max<std::int64_t>(0, length - length % shape.steps - 1);
}

/// All batches of an epoch except the last have the same size.
BatchSamples batch_samples(const SampleOrder& order, std::int64_t batches) {
  const std::int64_t each = order.micro_batch * order.world;
  return {each, batches > 0 ? order.samples_in_batch(batches - 1) : each};
}

/// Shape of a run whose length is being determined. A divisor that depends on the run's remainder would first count to
/// the end of the longest run.
WindowShape unlimited(WindowShape shape) {
  shape.max_micro_steps = max_micro_steps_of_run;
  if (!shape.max_iters && shape.knobs.normalizer == Normalizer::run_remainder) shape.max_iters = shape.max_micro_steps;
  return shape;
}

std::int64_t micro_steps_until_samples(const WindowShape& shape, std::int64_t target) {
  const WindowShape endless = unlimited(shape);
  WindowWalk walk(endless);
  walk.to({.per_sample = 1}, target);
  return std::max<std::int64_t>(1, walk.at().micro_step());
}

/// Counts micro-steps until a number of tokens, if samples differ in length. Epochs that train on everything once have
/// equal numbers of tokens.
std::int64_t micro_steps_until_tokens(const WindowShape& shape, const SampleOrder& order, const DataFacts& data,
                                      std::int64_t target) {
  AccumulationWindow window(unlimited(shape));
  const std::int64_t each = std::accumulate(data.sample_tokens.begin(), data.sample_tokens.end(), std::int64_t{0});
  const bool carries = shape.knobs.tail == EpochTail::carry || shape.knobs.tail == EpochTail::flush;
  const bool all_once = carries && shape.batches_per_epoch * order.micro_batch * order.world >= order.samples &&
                        order.repeated_per_epoch() == 0;
  const std::int64_t epochs = all_once && each > 0 ? (target - 1) / each : 0;
  window.seek(std::min(epochs * shape.batches_per_epoch, max_micro_steps_of_run));
  for (std::int64_t done = epochs * each; done < target;) {
    const auto micro = window.next();
    if (!micro) break;
    for (std::int64_t rank = 0; rank < order.world; ++rank)
      for (const std::int64_t sample : order.batch(micro->epoch, micro->batch, rank))
        done += data.sample_tokens[static_cast<std::size_t>(sample)];
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
  // Batches that the last epoch drops never become micro-steps, so the count must not reach into a further epoch.
  shape.max_micro_steps =
      std::min(total_windows(before).micro_steps + static_cast<std::int64_t>(part), total_windows(after).micro_steps);
}

void limit_run(const RunSpec& spec, const SampleOrder& order, const DataFacts& data, WindowShape& shape) {
  const RunSection& run = spec.run;
  if (run.updates) shape.max_updates = run.updates;
  // An epoch of the plan is one reading of the index, which may hold several passes over the data.
  const std::int64_t passes = spec.data.kind == DataKind::indexed ? passes_of_index(spec) : 1;
  if (run.epochs) limit_by_epochs(shape, *run.epochs / static_cast<double>(passes));
  if (run.samples) shape.max_micro_steps = micro_steps_until_samples(shape, *run.samples);
  if (run.tokens && data.tokens_per_sample > 0) {
    const std::int64_t samples = (*run.tokens + data.tokens_per_sample - 1) / data.tokens_per_sample;
    shape.max_micro_steps = micro_steps_until_samples(shape, samples);
  } else if (run.tokens) {
    shape.max_micro_steps = micro_steps_until_tokens(shape, order, data, *run.tokens);
  }
  const bool limited = shape.max_updates || shape.max_epochs || shape.max_micro_steps;
  if (!limited && shape.max_iters)
    shape.max_micro_steps = shape.max_iters;
  else if (!limited)
    shape.max_updates = updates_by_default;
}

// The warm-up in every unit: the work done when the schedule leaves it.
void derive_warmup(RunPlan& plan) {
  if (plan.curve.warmup <= 0) return;
  const WindowShape shape = AccumulationWindow(plan.window).shape();
  WindowWalk walk(shape);
  walk.to({.per_tick = 1}, static_cast<std::int64_t>(std::ceil(plan.curve.warmup)));
  plan.warmup_samples = walk.at().samples();
  plan.warmup_updates = walk.at().updates();
  plan.warmup_micro_steps = walk.at().micro_step();
}

/// All zero if unknown.
void derive_costs(RunPlan& plan) {
  plan.bubble = pipeline_bubble(pipeline_shape(plan.spec.parallel, plan.window.steps));
  plan.stages.resize(static_cast<std::size_t>(plan.spec.parallel.pipeline));
  if (!cost_is_known(plan.spec)) return;
  plan.parameter_count = parameter_totals(plan.spec.model, plan.spec.parallel.tensor).numel;
  plan.gradient_buckets = bucket_count_of(plan.spec, plan.knobs);
  RunSpec fitted = plan.spec;
  fitted.accumulation.micro_batch = plan.order.micro_batch;
  fitted.accumulation.steps = plan.window.steps;
  plan.stages = stage_costs(fitted);
  plan.memory = estimate_memory(fitted);
  for (const RankCost& cost : plan.stages)
    plan.wire_bytes_per_update =
        std::max(plan.wire_bytes_per_update, std::accumulate(cost.wire.begin(), cost.wire.end(), std::int64_t{0}));
}

}  // namespace

SampleOrder make_order(const RunSpec& spec, const DataFacts& data) {
  return {.samples = data.samples,
          .micro_batch = spec.accumulation.micro_batch,
          .world = spec.parallel.data,
          // An index has its own order and is read from front to back.
          .shuffle = spec.data.shuffle && spec.data.kind != DataKind::indexed,
          .seed = static_cast<std::uint64_t>(spec.run.seed),
          .uneven = resolve_knobs(spec).uneven_ranks,
          .split_batches = spec.accumulation.split_batches.value_or(false),
          .fill_alone = spec.teaching.bug == Bug::repeated_samples,
          .cyclic = is_cyclic(spec.data),
          .sharding = spec.data.sharding,
          .consumed = is_cyclic(spec.data) ? consumed_samples_of(spec.data, DatasetSplit::train) : 0};
}

WindowShape make_window(const RunSpec& spec, const SampleOrder& order, const DataFacts& data) {
  WindowShape shape;
  shape.knobs = resolve_knobs(spec);
  shape.steps = steps_of(spec.accumulation, order.world);
  shape.length_schedule = spec.accumulation.knobs.length_schedule;
  shape.batches_per_epoch = order.batches_per_epoch();
  shape.batches_per_epoch = batches_handed_out(shape);
  shape.samples = batch_samples(order, shape.batches_per_epoch);
  shape.rampup = ramp_of(spec.accumulation, order.world);
  shape.schedule_in_samples = spec.schedule.clock == RateClock::samples;
  shape.world = order.world;
  if (shape.knobs.total_guard && has_end(spec.schedule.kind)) shape.schedule_total = spec.schedule.total;
  shape.max_iters = spec.accumulation.max_iters;
  limit_run(spec, order, data, shape);
  return shape;
}

namespace {

/// Intended steps of the schedule in the run. A bug that advances it too often does not lengthen it.
std::int64_t meant_ticks(const RunPlan& plan) {
  if (plan.spec.teaching.bug != Bug::schedule_per_micro_step) return plan.totals.schedule_ticks;
  RunSpec right = plan.spec;
  right.teaching.bug = Bug::none;
  WindowShape window = plan.window;
  window.knobs = resolve_knobs(right);
  return total_windows(window).schedule_ticks;
}

}  // namespace

RunPlan derive_plan(const PlanInputs& inputs) {
  RunPlan plan{inputs};
  plan.grid = make_grid(plan.spec);
  const RunSpec fitted = fitted_to_memory(plan.spec, inputs.memory_per_rank);
  plan.order = make_order(fitted, plan.data);
  plan.window = make_window(fitted, plan.order, plan.data);
  plan.knobs = plan.window.knobs;
  plan.totals = total_windows(plan.window);
  plan.curve = make_curve(plan.spec.optimizer, plan.spec.schedule, meant_ticks(plan));
  // Megatron-LM's decay extends over all samples, including a last partial update.
  plan.weight_decay =
      make_weight_decay(plan.spec.optimizer, plan.spec.megatron.train_samples.value_or(plan.totals.samples));
  plan.global_batch = plan.order.micro_batch * plan.window.steps * plan.order.world;
  plan.tokens_per_update = plan.global_batch * plan.data.tokens_per_sample;
  plan.full_windows_per_epoch = plan.window.batches_per_epoch / plan.window.steps;
  plan.tail_micro_steps = plan.window.batches_per_epoch % plan.window.steps;
  derive_warmup(plan);
  derive_costs(plan);
  return plan;
}

}  // namespace accrue
