// SPDX-License-Identifier: GPL-3.0-or-later
#include "plan_outline.h"

#include <algorithm>
#include <optional>

#include "accrue/run/window/lr_curve.h"
#include "accrue/run/window/window_ends.h"

namespace accrue::ui {

namespace {

/// More planned points make no visible difference.
constexpr std::int64_t mostPlannedPoints = 20000;

PlannedPoint pointOf(const accrue::RunPlan& plan, const accrue::MicroPlan& micro) {
  const auto steps = static_cast<double>(std::max<std::int64_t>(plan.window.steps, 1));
  const auto count = static_cast<double>(micro.micro_step);
  PlannedPoint point;
  point.at[Clock::microStep] = count;
  point.at[Clock::update] = static_cast<double>(micro.window + 1);
  point.at[Clock::sample] = count * static_cast<double>(plan.global_batch) / steps;
  point.at[Clock::token] = count * static_cast<double>(plan.tokens_per_update) / steps;
  if (plan.window.batches_per_epoch > 0)
    point.at[Clock::epoch] = static_cast<double>(micro.epoch) +
                             static_cast<double>(micro.batch + 1) / static_cast<double>(plan.window.batches_per_epoch);
  point.lr = accrue::lr_at(plan.curve, micro.schedule_position - micro.schedule_ticks);
  return point;
}

/// Number of micro-steps that the form previews from the start of a run.
constexpr std::int64_t sketchedMicroSteps = 256;
/// Micro-steps of the window at the end of the first epoch, if it is shorter than the others.
std::vector<accrue::MicroPlan> epochTailOf(const accrue::WindowShape& shape) {
  const std::int64_t end = accrue::first_epoch_end(shape);
  std::vector<accrue::MicroPlan> tail;
  if (end == 0) return tail;
  accrue::AccumulationWindow window(shape);
  window.seek(end - 1);
  const std::int64_t size = window.next()->position + 1;
  if (size >= std::min(shape.steps, sketchedMicroSteps)) return tail;
  window.seek(end - size);
  while (std::ssize(tail) < size) tail.push_back(*window.next());
  return tail;
}

}  // namespace

PlanSketch sketchOf(const accrue::RunPlan& plan) {
  return {.arithmetic = plan.arithmetic(),
          .steps = plan.window.steps,
          .first = accrue::preview_windows(plan.window, sketchedMicroSteps),
          .epochTail = epochTailOf(plan.window)};
}

PlanOutline outlineOf(const accrue::RunPlan& plan, const std::atomic<bool>& cancelled) {
  PlanOutline outline;
  outline.totals = plan.window.steps_set.empty() ? plan.totals : accrue::total_windows(plan.window);
  const std::int64_t stride = std::max<std::int64_t>(outline.totals.updates / mostPlannedPoints, 1);
  accrue::AccumulationWindow walk(plan.window);
  std::optional<accrue::MicroPlan> last;
  while (const auto micro = accrue::next_update(walk)) {
    if (cancelled.load(std::memory_order_relaxed)) return {};
    last = micro;
    if (micro->window % stride == 0) outline.points.push_back(pointOf(plan, *micro));
    // A run of a hundred million updates is outlined as quickly as one of thousands, because the walk skips updates.
    walk.pass_updates(std::min(stride - 1 - micro->window % stride, outline.totals.updates - micro->window - 2));
  }
  if (last && last->window % stride != 0) outline.points.push_back(pointOf(plan, *last));
  return outline;
}

}  // namespace accrue::ui
