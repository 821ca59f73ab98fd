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
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "data/mix64.h"
#include "train/checkpointing.h"
#include "train/evaluate.h"

namespace accrue {
namespace {

constexpr std::uint64_t dropout_stream = 0xd0d0;

/// The batches of the rest of the window, and how much the whole of it holds over the ranks of the normaliser's scope.
struct CountedWindow {
  std::deque<Batch> batches;
  WindowCounts counts;
};

CountedWindow count_window(Training& training) {
  CountedWindow counted;
  AccumulationWindow ahead = training.window;
  WindowCounts rest;
  while (const auto plan = ahead.next()) {
    Batch& batch = counted.batches.emplace_back(training.feed.batch(*plan));
    rest.items += batch.items;
    rest.samples += batch.samples;
    if (plan->update) break;
  }
  if (training.open.counted.samples > 0) {  // the window's beginning was counted before the run was interrupted
    counted.counts = training.open.counted;
    return counted;
  }
  counted.counts = rest;
  if (!training.scaling.counts_over_ranks()) return counted;
  const auto sums =
      sum_over_ranks(training.axis, {static_cast<double>(rest.items), static_cast<double>(rest.samples), 0.0});
  counted.counts = {static_cast<std::int64_t>(sums[0]), static_cast<std::int64_t>(sums[1])};
  return counted;
}

/// Forward and backward of one batch with a loss; its gradient is added to the arena.
void learn(Training& training, const MicroPlan& plan, const Batch& batch, const WindowCounts& counts,
           WindowTally& tally) {
  const std::int64_t update = plan.window + 1;
  training.report.phase("forward", update, plan.micro_step);
  key_dropout(training, plan.micro_step);
  const std::int64_t begin = now_ns();
  LossSum loss = training.model.module().loss(batch);
  if (training.faults.overflows(plan)) loss.sum = loss.sum * std::numeric_limits<double>::infinity();
  const std::int64_t forward_end = now_ns();

  training.report.phase("backward");
  const WindowCounts micro{loss.count, batch.samples};
  const double weight = training.scaling.weight(plan, micro, counts);
  const double scaled = weight * training.loss_scale.factor();
  (scaled == 1.0 ? loss.sum : loss.sum * scaled).backward();
  const std::int64_t end = now_ns();
  training.report.operation(ComputeKind::forward, plan.micro_step, 0, begin, forward_end);
  training.report.operation(ComputeKind::backward, plan.micro_step, 0, forward_end, end);

  const double sum = loss.sum.item<double>();
  const double mean = sum / static_cast<double>(loss.count);
  tally.numerator += weight * sum;
  tally.mean_sum += mean;
  tally.last_mean = mean;
  ++tally.micro_steps;
  if (!std::isfinite(sum) && tally.non_finite_micro_step == 0) tally.non_finite_micro_step = plan.micro_step;
  training.report.micro_step(plan, {mean, loss.count, batch.samples, end, end - begin});
}

/// The partial sum of gradients is clipped after each micro-step (K11 every_micro_step). Replayed as Colossal-AI does
/// it, a norm of 0 does not switch clipping off: it leaves nothing.
void clip_partial_sum(Training& training) {
  if (training.plan().knobs.clip_stage != ClipStage::every_micro_step) return;
  const double max_norm = training.spec().optimizer.clip_norm * training.loss_scale.factor();
  at::Tensor gradients = training.reducer.flat_gradients();
  if (max_norm <= 0.0) {
    if (training.plan().knobs.replays(Replay::clip_partial_sums)) gradients.zero_();
  } else if (training.plan().knobs.clip_kind == ClipKind::value) {
    gradients.clamp_(-max_norm, max_norm);
  } else {
    gradients.mul_(clip_factor(flat_norm(gradients), max_norm));
  }
}

void reduce(Training& training) {
  training.report.phase("reduce");
  const at::Tensor kept = training.faults.keep_unreduced(training.reducer);
  training.reducer.finish();
  training.faults.put_back(training.reducer, kept);
}

void micro_step(Training& training, const MicroPlan& plan, const Batch& batch, const WindowCounts& counts,
                WindowTally& tally) {
  const bool reduces = training.faults.reduces(plan);
  std::optional<GradSync::NoSyncScope> quiet;
  if (!reduces) quiet.emplace(training.reducer);
  if (training.faults.clears_before(plan)) training.reducer.zero_grad();
  tally.counts.items += batch.items;
  tally.counts.samples += batch.samples;
  if (batch.items > 0 && !training.faults.leaves_out(plan)) {
    learn(training, plan, batch, counts, tally);
  } else {  // an empty micro-step: nothing to learn from, but the other ranks' reductions need this rank
    training.report.micro_step(plan, {.samples = batch.samples, .end_ns = now_ns()});
  }
  if (reduces) reduce(training);
  clip_partial_sum(training);
}

/// What may happen inside a window besides training.
void between_micro_steps(Training& training, const MicroPlan& plan, const OpenWindow& open) {
  const std::int64_t evaluations = training.spec().evaluate.every_micro_steps;
  if (evaluations > 0 && plan.micro_step % evaluations == 0) evaluate(training);
  if (!plan.update && checkpoint_due_inside(training, plan.micro_step)) save_inside(training, plan, open);
}

}  // namespace

void key_dropout(const Training& training, std::int64_t micro_step) {
  const auto seed = static_cast<std::uint64_t>(training.spec().run.seed);
  const auto rank = static_cast<std::uint64_t>(training.axis.rank());
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  generator.set_current_seed(mix64(seed ^ mix64(rank), dropout_stream, static_cast<std::uint64_t>(micro_step)));
}

WindowPass train_window(Training& training) {
  WindowPass pass;
  CountedWindow counted;
  training.feed.look_ahead(training.window);
  if (training.scaling.counts_first()) {
    training.report.phase("data");
    counted = count_window(training);
  }
  pass.tally = std::exchange(training.open, {}).tally;
  while (const auto plan = training.window.next()) {
    if (training.channel.before_micro_step(plan->micro_step).stop) {
      pass.end = WindowEnd::stopped;
      return pass;
    }
    training.report.phase("data", plan->window + 1, plan->micro_step);
    Batch batch;
    if (counted.batches.empty()) {
      batch = training.feed.batch(*plan);
    } else {
      batch = std::move(counted.batches.front());
      counted.batches.pop_front();
    }
    micro_step(training, *plan, batch, counted.counts, pass.tally);
    if (plan->epoch_ends) training.feed.drain(*plan);
    training.report.gauge_if_due();
    pass.last = *plan;
    pass.micro_steps.push_back(*plan);
    between_micro_steps(training, *plan, {pass.tally, counted.counts});
    if (plan->update) {
      pass.end = WindowEnd::boundary;
      return pass;
    }
    training.feed.look_ahead(training.window);
  }
  return pass;
}

}  // namespace accrue
