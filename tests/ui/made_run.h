// SPDX-License-Identifier: GPL-3.0-or-later
// A run as its ranks would report it, made from the same window the engine obeys: for tests of what shows runs.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "accrue/run/events/run_event.h"
#include "accrue/run/plan/run_plan.h"
#include "accrue/run/window/accumulation_window.h"
#include "accrue/run/window/lr_curve.h"

namespace accrue::test {

struct MadeRun {
  std::int64_t steps = 4;
  std::int64_t ranks = 2;
  std::int64_t updates = 40;
  std::int64_t microBatch = 4;
  std::int64_t items = 512;  ///< per rank and micro-step
  std::int64_t batchesPerEpoch = 22;
  /// Loss of a rank's micro-step.
  std::function<double(std::int64_t microStep, std::int64_t rank)> loss = [](std::int64_t m, std::int64_t rank) {
    return 2.0 + 3.0 / (1.0 + 0.05 * static_cast<double>(m)) + 0.01 * static_cast<double>(rank);
  };
  double forward = 0.008;  ///< seconds
  double backward = 0.016;
  double collective = 0.004;
  double step = 0.003;
  std::set<std::int64_t> unlabelled{};  ///< updates whose windows hold no labelled item

  RunPlan plan() const {
    RunPlan plan;
    plan.spec.accumulation.steps = steps;
    plan.spec.accumulation.micro_batch = microBatch;
    plan.spec.parallel.data = ranks;
    plan.spec.run.name = "N=" + std::to_string(steps);
    plan.window.steps = steps;
    plan.order.micro_batch = microBatch;
    plan.window.batches_per_epoch = batchesPerEpoch;
    plan.window.world = ranks;
    plan.window.max_updates = updates;
    plan.totals = total_windows(plan.window);
    plan.global_batch = steps * microBatch * ranks;
    plan.tokens_per_update = steps * items * ranks;
    plan.curve = {.kind = ScheduleKind::cosine,
                  .lr = 3e-3,
                  .min_lr = 3e-4,
                  .warmup = static_cast<double>(updates / 10),
                  .total = updates};
    return plan;
  }

  /// Events of updates (from, upTo], in the order in which they reach the supervisor.
  std::vector<RunEvent> events(std::int64_t upTo, std::int64_t from = 0) const {
    const RunPlan thePlan = plan();
    AccumulationWindow window(thePlan.window);
    std::vector<RunEvent> events;
    double time = 0.1;
    double compute = 0.0;
    double sum = 0.0;
    std::int64_t samples = 0;
    std::int64_t inWindow = 0;
    while (const auto micro = window.next()) {
      if (micro->window >= upTo) break;
      const bool wanted = micro->window >= from;
      const double end = time + forward + backward;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const double value = isEmpty(*micro) ? 0.0 : loss(micro->micro_step, rank);
        sum += value;
        if (wanted) reportMicroStep(events, rank, *micro, value, time);
      }
      ++inWindow;
      samples += microBatch * ranks;
      compute += forward + backward;
      time = end;
      if (!micro->update) continue;
      for (std::int64_t rank = 0; rank < ranks && wanted; ++rank)
        events.push_back({rank, -1, ns(end),
                          Sync{{micro->window + 1},
                               {micro->micro_step},
                               {"data"},
                               {"all_reduce"},
                               {CollectivePurpose::gradients},
                               {4096},
                               {ns(end)},
                               {ns(end + collective)}}});
      time = end + collective + step;
      for (std::int64_t rank = 0; rank < ranks && wanted; ++rank)
        events.push_back(
            {rank, -1, ns(time),
             Operations{{ComputeKind::step}, {micro->micro_step}, {0}, {ns(end + collective)}, {ns(time)}}});
      compute += step;
      Update update{.update = micro->window + 1,
                    .micro_step = micro->micro_step,
                    .samples = samples,
                    .tokens = samples / microBatch * items,
                    .epoch = static_cast<double>(micro->epoch) +
                             static_cast<double>(micro->batch + 1) / static_cast<double>(batchesPerEpoch),
                    .loss = sum / static_cast<double>(inWindow * ranks),
                    .lr = lr_at(thePlan.curve, micro->schedule_position - micro->schedule_ticks),
                    .grad_norm = 1.0,
                    .outcome = isEmpty(*micro) ? StepOutcome::skipped_empty : StepOutcome::updated,
                    .seconds = time,
                    .compute_seconds = compute,
                    .reason = "full",
                    .steps = steps};
      for (std::int64_t rank = 0; rank < ranks && wanted; ++rank) events.push_back({rank, -1, ns(time), update});
      sum = 0.0;
      inWindow = 0;
    }
    return events;
  }

  bool isEmpty(const MicroPlan& micro) const { return unlabelled.contains(micro.window + 1); }
  /// Adds a rank's events of one micro-step that begins at `time`.
  void reportMicroStep(std::vector<RunEvent>& events, std::int64_t rank, const MicroPlan& micro, double value,
                       double time) const {
    const double middle = time + forward;
    const double end = middle + backward;
    events.push_back({rank, -1, ns(end),
                      Operations{{ComputeKind::forward, ComputeKind::backward},
                                 {micro.micro_step, micro.micro_step},
                                 {0, 0},
                                 {ns(time), ns(middle)},
                                 {ns(middle), ns(end)}}});
    events.push_back(
        {rank, -1, ns(end),
         microSteps(micro, value, isEmpty(micro) ? 0 : items, microBatch, ns(end), ns(forward + backward))});
  }
  static MicroSteps microSteps(const MicroPlan& micro, double value, std::int64_t tokens, std::int64_t samples,
                               std::int64_t endNs, std::int64_t computeNs) {
    return {{micro.micro_step},
            {micro.window + 1},
            {micro.position + 1},
            {micro.window_size},
            {micro.epoch},
            {micro.batch},
            {value},
            {tokens},
            {samples},
            {endNs},
            {computeNs}};
  }
  /// Micro-step m of the plan as `rank` reports it, ended after m ns.
  RunEvent microStep(std::int64_t rank, std::int64_t m, double value, std::int64_t tokens) const {
    AccumulationWindow window(plan().window);
    window.seek(m - 1);
    return {rank, m, m, microSteps(window.next().value(), value, tokens, microBatch, m, 0)};
  }
  static RunEvent started() { return {supervisor_rank, 0, 0, RunStarted{.run = "made"}}; }
  static RunEvent state(const char* name) { return {supervisor_rank, 1, 0, StateChanged{.state = name}}; }
  static std::int64_t ns(double seconds) { return static_cast<std::int64_t>(std::llround(seconds * 1e9)); }
};

}  // namespace accrue::test
