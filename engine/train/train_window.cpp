// SPDX-License-Identifier: Apache-2.0
// Micro-steps of one window. Between its first and its last nothing is exchanged: sums of losses and counts are kept
// locally and agreed on at the boundary, with deferred normalisation applied there. Only a normaliser that divides by a
// count of the whole window as it goes (K6 eager with K5 samples or tokens) fetches all batches first and asks the
// ranks for their counts.
//
// Dropout draws from the default generator, keyed anew before each forward by (seed, rank, micro-step): a resumed run
// draws what the uninterrupted one drew, and evaluation in between cannot shift anything.
#include "train/train_window.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "data/mix64.h"

namespace accrue {
namespace {

constexpr std::uint64_t dropout_stream = 0xd0d0;

Batch fetch(Training& training, const MicroPlan& plan) {
  const auto samples = training.plan().order.batch(plan.epoch, plan.batch, training.axis.rank());
  return training.data->batch(Split::train, samples);
}

void key_dropout(const Training& training, std::int64_t micro_step) {
  const auto seed = static_cast<std::uint64_t>(training.spec().run.seed);
  const auto rank = static_cast<std::uint64_t>(training.axis.rank());
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  generator.set_current_seed(mix64(seed ^ mix64(rank), dropout_stream, static_cast<std::uint64_t>(micro_step)));
}

/// The batches of the coming window, and how much they hold over the ranks of the normaliser's scope.
struct CountedWindow {
  std::deque<Batch> batches;
  WindowCounts counts;
};

CountedWindow count_window(Training& training) {
  CountedWindow counted;
  AccumulationWindow ahead = training.window;
  while (const auto plan = ahead.next()) {
    Batch& batch = counted.batches.emplace_back(fetch(training, *plan));
    counted.counts.items += batch.items;
    counted.counts.samples += batch.samples;
    if (plan->update) break;
  }
  if (!training.scaling.counts_over_ranks()) return counted;
  const auto sums = sum_over_ranks(
      training.axis, {static_cast<double>(counted.counts.items), static_cast<double>(counted.counts.samples), 0.0});
  counted.counts = {static_cast<std::int64_t>(sums[0]), static_cast<std::int64_t>(sums[1])};
  return counted;
}

/// Forward and backward of one batch with a loss; its gradient is added to the arena.
void learn(Training& training, const MicroPlan& plan, const Batch& batch, const WindowCounts& counts,
           WindowTally& tally) {
  const std::int64_t update = plan.window + 1;
  training.report.phase("forward", update, plan.micro_step);
  key_dropout(training, plan.micro_step);
  MicroTimes times{.begin_ns = now_ns()};
  const LossSum loss = training.model.module().loss(batch);
  times.forward_end_ns = now_ns();

  training.report.phase("backward");
  const WindowCounts micro{loss.count, batch.samples};
  const double weight = training.scaling.weight(plan, micro, counts);
  (weight == 1.0 ? loss.sum : loss.sum * weight).backward();
  times.backward_end_ns = now_ns();

  const double sum = loss.sum.item<double>();
  const double mean = sum / static_cast<double>(loss.count);
  tally.numerator += weight * sum;
  tally.mean_sum += mean;
  tally.last_mean = mean;
  ++tally.micro_steps;
  if (!std::isfinite(sum) && tally.non_finite_micro_step == 0) tally.non_finite_micro_step = plan.micro_step;
  training.report.micro_step(mean, loss.count, batch.samples, times);
}

/// The partial sum of gradients is clipped after each micro-step (K11 every_micro_step, for replaying upstream runs).
void clip_partial_sum(Training& training) {
  const double max_norm = training.spec().optimizer.clip_norm;
  if (training.plan().knobs.clip_stage != ClipStage::every_micro_step || max_norm <= 0.0) return;
  at::Tensor gradients = training.reducer.flat_gradients();
  if (training.plan().knobs.clip_kind == ClipKind::value)
    gradients.clamp_(-max_norm, max_norm);
  else
    gradients.mul_(clip_factor(flat_norm(gradients), max_norm));
}

void micro_step(Training& training, const MicroPlan& plan, const Batch& batch, const WindowCounts& counts,
                WindowTally& tally) {
  std::optional<GradSync::NoSyncScope> quiet;
  if (!plan.sync) quiet.emplace(training.reducer);
  tally.counts.items += batch.items;
  tally.counts.samples += batch.samples;
  if (batch.items > 0) {
    learn(training, plan, batch, counts, tally);
  } else {  // an empty micro-step: nothing to learn from, but the other ranks' reductions need this rank
    const std::int64_t now = now_ns();
    training.report.micro_step(0.0, 0, batch.samples, {now, now, now});
  }
  if (plan.sync) {
    training.report.phase("reduce");
    training.reducer.finish();
  }
  clip_partial_sum(training);
}

}  // namespace

WindowPass train_window(Training& training) {
  WindowPass pass;
  CountedWindow counted;
  if (training.scaling.counts_first()) {
    training.report.phase("data");
    counted = count_window(training);
  }
  while (const auto plan = training.window.next()) {
    if (training.channel.before_micro_step(plan->micro_step).stop) {
      pass.end = WindowEnd::stopped;
      return pass;
    }
    training.report.phase("data", plan->window + 1, plan->micro_step);
    Batch batch;
    if (counted.batches.empty()) {
      batch = fetch(training, *plan);
    } else {
      batch = std::move(counted.batches.front());
      counted.batches.pop_front();
    }
    micro_step(training, *plan, batch, counted.counts, pass.tally);
    training.report.gauge_if_due(training.cursor);
    pass.last = *plan;
    if (plan->update) {
      pass.end = WindowEnd::boundary;
      return pass;
    }
  }
  return pass;
}

}  // namespace accrue
