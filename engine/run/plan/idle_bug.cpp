// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/plan/idle_bug.h"

#include <algorithm>

#include "accrue/run/base/counted.h"

namespace accrue {

namespace {

/// Whether two trained micro-steps can have different numbers of items.
bool slots_differ(const RunPlan& plan) {
  const auto& items = plan.data.sample_tokens;
  if (std::ranges::adjacent_find(items, std::ranges::not_equal_to()) != items.end()) return true;
  if (items.empty() && plan.data.tokens_per_sample == 0) return true;
  const bool reaches_end = plan.totals.micro_steps >= plan.window.batches_per_epoch;
  const std::int64_t last = plan.window.batches_per_epoch - 1;
  return reaches_end && last > 0 && plan.order.samples_in_batch(last) != plan.order.samples_in_batch(0);
}

/// The smallest larger micro-batch that does not divide the samples of an epoch; 0: none.
std::int64_t uneven_micro_batch(const RunPlan& plan) {
  const SampleOrder& order = plan.order;
  for (std::int64_t micro = order.micro_batch + 1; micro * order.world < order.samples; ++micro)
    if (order.samples % (micro * order.world) != 0) return micro;
  return 0;
}

IdleBug equal_slots(const RunPlan& plan) {
  IdleBug idle{.why = "all slots are equal: every micro-step holds the same number of items"};
  if (const std::int64_t micro = uneven_micro_batch(plan); micro > 0) {
    idle.key = "accumulation.micro_batch";
    idle.found = std::to_string(plan.order.micro_batch);
    idle.expected = "a size that does not divide the " + counted(plan.order.samples, "sample");
    idle.fix = std::to_string(micro);
  }
  return idle;
}

std::optional<IdleBug> alone(const RunPlan& plan) {
  if (plan.spec.parallel.data > 1) return std::nullopt;
  return IdleBug{"there is only one rank", "parallel.data", "1", "two ranks or more", "2"};
}

std::optional<IdleBug> single_steps(const RunPlan& plan) {
  if (plan.totals.micro_steps > plan.totals.updates) return std::nullopt;
  return IdleBug{"a window has one micro-step", "accumulation.steps", "1", "two or more", "4"};
}

std::optional<IdleBug> first_of(const std::optional<IdleBug>& first, const std::optional<IdleBug>& second) {
  return first ? first : second;
}

std::optional<IdleBug> idle_tail(const RunPlan& plan) {
  const std::int64_t trained = plan.totals.micro_steps - plan.totals.left_over_micro_steps;
  if (trained != plan.totals.updates * plan.window.steps) return std::nullopt;
  IdleBug idle{.why = "no window is short"};
  std::int64_t steps = std::max<std::int64_t>(plan.window.steps, 2);
  while (steps < plan.window.batches_per_epoch && plan.window.batches_per_epoch % steps == 0) ++steps;
  if (plan.knobs.tail == EpochTail::flush && steps < plan.window.batches_per_epoch && steps != plan.window.steps) {
    idle.key = "accumulation.steps";
    idle.found = std::to_string(plan.window.steps);
    idle.expected =
        "a number that does not divide the " + counted(plan.window.batches_per_epoch, "micro-step") + " of an epoch";
    idle.fix = std::to_string(steps);
  }
  return idle;
}

std::optional<IdleBug> idle_schedule(const RunPlan& plan) {
  const RunSpec& spec = plan.spec;
  if (spec.schedule.clock != RateClock::positions)
    return IdleBug{"the schedule counts samples, not micro-steps", "schedule.clock", "\"samples\"", "\"positions\"",
                   "positions"};
  if (spec.schedule.kind == ScheduleKind::constant && spec.schedule.warmup == 0 && !spec.schedule.warmup_fraction)
    return IdleBug{"the learning rate is constant", "schedule.kind", "\"constant\"", "a schedule that falls", "cosine"};
  return single_steps(plan);
}

std::optional<IdleBug> idle_reduction(const RunPlan& plan) {
  const bool each = resolve_knobs(plan.spec.accumulation).reduce_when == ReduceWhen::every_micro_step;
  if (auto idle = first_of(alone(plan), single_steps(plan))) return idle;
  if (!each) return std::nullopt;
  return IdleBug{"every micro-step reduces anyway", "accumulation.reduce_when", "\"every_micro_step\"", "\"boundary\"",
                 "boundary"};
}

}  // namespace

std::optional<IdleBug> idle_bug(const RunPlan& plan) {
  const RunSpec& spec = plan.spec;
  switch (spec.teaching.bug) {
    case Bug::none:
      return std::nullopt;
    case Bug::mean_of_means:
      if (slots_differ(plan)) return std::nullopt;
      return equal_slots(plan);
    case Bug::divide_by_own_size:
      if (slots_differ(plan) || plan.data.tokens_per_sample * plan.order.micro_batch != 1) return std::nullopt;
      return IdleBug{"a micro-batch has one item", "accumulation.micro_batch", "1", "two samples or more", "2"};
    case Bug::no_division:
    case Bug::skipped_micro_step:
    case Bug::zero_grad_inside:
      return single_steps(plan);
    case Bug::tail_by_steps:
      return idle_tail(plan);
    case Bug::no_sync_off_by_one:
      return first_of(alone(plan), single_steps(plan));
    case Bug::no_sync_backward_only:
    case Bug::no_no_sync:
      return idle_reduction(plan);
    case Bug::clip_every_micro_step:
      if (spec.optimizer.clip_norm > 0) return single_steps(plan);
      return IdleBug{"nothing is clipped", "optimizer.clip_norm", "0", "a norm that gradients exceed", "0.1"};
    case Bug::schedule_per_micro_step:
      return idle_schedule(plan);
    case Bug::batch_norm:
      if (spec.model.kind == ModelKind::mlp && !spec.model.hidden.empty()) return std::nullopt;
      return IdleBug{.why = "only a model of kind \"mlp\" with hidden layers can have a batch norm"};
    case Bug::unused_parameters:
    case Bug::pipeline_sync:
      return alone(plan);
    case Bug::repeated_samples:
      if (plan.order.repeated_per_epoch() == 0) {
        IdleBug idle = equal_slots(plan);
        idle.why = "all batches are full, so no sample is repeated";
        return idle;
      }
      if (plan.totals.micro_steps >= plan.window.batches_per_epoch) return std::nullopt;
      return IdleBug{"the run ends before its first epoch does", "run.epochs", "", "one epoch or more", "2"};
  }
  return std::nullopt;
}

}  // namespace accrue
