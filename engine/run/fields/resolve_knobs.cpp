// SPDX-License-Identifier: Apache-2.0
// Resolves a spec's knobs: the dialect's preset, the dialect's own keys, the spec's overrides, and their consequences.
#include <algorithm>
#include <utility>

#include "accrue/run/fields/accumulation_knobs.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec.h"

namespace accrue {
namespace {

/// Defects of each original.
constexpr std::pair<Dialect, Replay> defects[] = {{Dialect::llm, Replay::scheduler_state},
                                                  {Dialect::llm, Replay::narrow_no_sync},
                                                  {Dialect::colossalai, Replay::clip_partial_sums},
                                                  {Dialect::colossalai, Replay::drain_early},
                                                  {Dialect::colossalai, Replay::narrow_no_sync},
                                                  {Dialect::accelerate, Replay::adjust_scheduler},
                                                  {Dialect::accelerate, Replay::zero_before_backward},
                                                  {Dialect::mmengine, Replay::restart_count},
                                                  {Dialect::mmengine, Replay::narrow_no_sync}};

/// K9 as in PyTorch's reducer: the forward decides whether the following backward reduces, so a scope around the
/// backward alone is too late. Colossal-AI's handlers reduce by themselves, at the boundary, independent of the scope.
void reduce_uncovered(AccumulationKnobs& knobs) {
  if (knobs.reduce_mechanism != ReduceMechanism::handlers) knobs.reduce_when = ReduceWhen::every_micro_step;
}

/// Effect of a defect on the plan; the others affect only the engine.
void apply_replay(const AccumulationSpec& spec, AccumulationKnobs& knobs) {
  if (knobs.replays(Replay::clip_partial_sums)) knobs.clip_stage = ClipStage::every_micro_step;
  if (knobs.replays(Replay::drain_early)) knobs.tail = EpochTail::carry;  // for the rest of an epoch's batches
  if (knobs.replays(Replay::adjust_scheduler)) knobs.micro_bump = spec.adjust_scheduler.value_or(true);
  if (knobs.replays(Replay::narrow_no_sync)) reduce_uncovered(knobs);
}

/// Bugs of the gallery that are a wrong choice of knobs.
void apply_bug(Bug bug, AccumulationKnobs& knobs) {
  switch (bug) {
    case Bug::mean_of_means:
    case Bug::divide_by_own_size:  // the engine also ignores the mean over the micro-batch
      knobs.normalizer = Normalizer::true_size;
      break;
    case Bug::no_division:
      knobs.normalizer = Normalizer::none;
      break;
    case Bug::tail_by_steps:  // if items are counted, the engine shortens the short window
      if (!counts_items(knobs)) knobs.normalizer = Normalizer::steps;
      break;
    case Bug::no_sync_backward_only:
    case Bug::no_no_sync:
      knobs.reduce_when = ReduceWhen::every_micro_step;
      break;
    case Bug::clip_every_micro_step:
      knobs.clip_stage = ClipStage::every_micro_step;
      break;
    case Bug::schedule_per_micro_step:
      knobs.schedule_clock = ScheduleClock::micro_step;
      break;
    case Bug::repeated_samples:
      knobs.uneven_ranks = UnevenRanks::repeat;
      break;
    default:
      break;
  }
}

/// A schedule that counts samples advances by those of each update, whatever the dialect would tick.
void count_samples(AccumulationKnobs& knobs) {
  knobs.schedule_clock = ScheduleClock::update;
  knobs.total_guard = false;
  knobs.micro_bump = false;
}

/// Consequences of other knobs, unless the spec sets them. A sum over ranks needs a denominator counted over them;
/// without one, ranks are averaged. A bound on partial sums applies to sums that are already divided.
void apply_consequences(const AccumulationSpec& spec, AccumulationKnobs& knobs) {
  if (!counts_over_ranks(knobs) && !spec.knobs.reduce_op) knobs.reduce_op = ReduceOp::mean;
  if (knobs.clip_stage == ClipStage::every_micro_step && !spec.knobs.normalize_when)
    knobs.normalize_when = NormalizeWhen::eager;
}

/// Applies Accelerate's own keys with the meaning of its plugin, loader and scheduler.
void apply_accelerate_keys(const AccumulationSpec& spec, AccumulationKnobs& knobs) {
  if (spec.sync_with_dataloader == false) {
    knobs.tail = EpochTail::carry;
    knobs.run_tail = RunTail::discard;
    knobs.counter_reset = CounterReset::never;
  }
  if (spec.sync_each_batch == true) knobs.reduce_when = ReduceWhen::every_micro_step;
  if (spec.split_batches == true) {  // one inner step per update; upstream does not apply its guard on this path
    knobs.schedule_clock = ScheduleClock::update;
    knobs.total_guard = false;
  }
  if (spec.step_scheduler_with_optimizer == false) {  // the caller's loop calls the inner scheduler every micro-step
    knobs.schedule_clock = ScheduleClock::external;
    knobs.total_guard = false;
  }
}

}  // namespace

AccumulationKnobs preset(Dialect dialect) {
  AccumulationKnobs knobs;
  knobs.total_guard = dialect == Dialect::accelerate;
#define ACCRUE_KNOB_PRESET(Type, name, ...)                 \
  {                                                         \
    using enum Type;                                        \
    constexpr Type values[] = {__VA_ARGS__};                \
    knobs.name = values[static_cast<std::size_t>(dialect)]; \
  }
  ACCRUE_KNOBS(ACCRUE_KNOB_PRESET)
#undef ACCRUE_KNOB_PRESET
  return knobs;
}

bool has_defect(Dialect dialect, Replay defect) {
  return std::ranges::find(defects, std::pair(dialect, defect)) != std::end(defects);
}

bool AccumulationKnobs::replays(Replay defect) const {
  return std::ranges::find(replay, defect) != replay.end();
}

AccumulationKnobs resolve_knobs(const AccumulationSpec& spec) {
  AccumulationKnobs knobs = preset(spec.dialect);
  if (spec.dialect == Dialect::accelerate) apply_accelerate_keys(spec, knobs);
  for_each_knob([&](const char*, auto knob, auto override) {
    if (const auto& set = spec.knobs.*override) knobs.*knob = *set;
  });
  for (const std::string& name : spec.replay)
    if (const auto defect = from_name<Replay>(name); defect && has_defect(spec.dialect, *defect))
      knobs.replay.push_back(*defect);
  const bool narrow = spec.knobs.no_sync_cover == NoSyncCover::backward && !spec.knobs.reduce_when;
  if (narrow) reduce_uncovered(knobs);
  apply_replay(spec, knobs);
  if (knobs.schedule_clock != ScheduleClock::update_times_world) knobs.total_guard = false;
  apply_consequences(spec, knobs);
  return knobs;
}

AccumulationKnobs resolve_knobs(const RunSpec& spec) {
  AccumulationKnobs knobs = resolve_knobs(spec.accumulation);
  apply_bug(spec.teaching.bug, knobs);
  if (spec.schedule.clock == RateClock::samples) count_samples(knobs);
  apply_consequences(spec.accumulation, knobs);
  return knobs;
}

KnobOverrides explicit_knobs(const AccumulationKnobs& knobs) {
  KnobOverrides all;
  for_each_knob([&](const char*, auto knob, auto override) { all.*override = knobs.*knob; });
  return all;
}

}  // namespace accrue
