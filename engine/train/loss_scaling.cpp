// SPDX-License-Identifier: Apache-2.0
#include "train/loss_scaling.h"

namespace accrue {
namespace {

/// 1 / value. A window without items has no gradient either, so 0 keeps it 0; infinity would make it NaN.
double inverse(double value) {
  return value == 0.0 ? 0.0 : 1.0 / value;
}

/// The number by which a window's sum is divided: its items, its samples, or a number of the plan (N, 1, ...).
double denominator(const Division& division, const WindowCounts& counts) {
  if (division.by == Division::By::items) return static_cast<double>(counts.items);
  if (division.by == Division::By::samples) return static_cast<double>(counts.samples);
  return division.value;
}

}  // namespace

// With L_i summed over items_i, and k micro-steps of N in the window, K5 gives (w_i, f) of the deferred form as
//   none (1 / items_i, 1), steps (1 / items_i, 1 / N), true_size (1 / items_i, 1 / k),
//   samples (samples_i / items_i, 1 / samples), tokens (1, 1 / items).
// run_remainder is steps but for the run's last window. The eager form moves f into each w_i.
LossScaling::LossScaling(const AccumulationKnobs& knobs, Bug bug, std::int64_t world)
    : knobs_(knobs),
      bug_(bug),
      ranks_(static_cast<double>(world)),
      world_(knobs.reduce_when == ReduceWhen::never ? 1.0 : ranks_),
      counts_items_(counts_items(knobs)),
      global_(knobs.normalizer_scope == NormalizerScope::data_parallel && world_ > 1),
      deferred_(divides_when(knobs, world) == NormalizeWhen::deferred) {
  const ReduceOp wanted = counts_over_ranks() ? ReduceOp::sum : knobs.reduce_op;
  // Reducing the arena again after each micro-step preserves a reduced part S only under a mean over the ranks r:
  // mean(S + g_r) = S + mean(g_r), but a sum over R ranks gives R S. So a wanted sum is R times that mean.
  reduce_op_ = knobs.reduce_when == ReduceWhen::every_micro_step ? ReduceOp::mean : wanted;
  correction_ = wanted == ReduceOp::sum && reduce_op_ == ReduceOp::mean ? world_ : 1.0;
}

bool LossScaling::counts_first() const {
  return counts_items_ && !deferred_;
}

bool LossScaling::counts_first_for_second() const {
  return counts_items_ && knobs_.normalizer != Normalizer::samples;
}

// loss = L1 / items + L2 / samples = (L1 + L2 items / samples) / items. Returns items / samples.
double LossScaling::share_of_second(const LossSum& loss, const WindowCounts& counts) const {
  // A micro-step that is divided by its own items has the mean of its own samples, which a count of samples then
  // weighs.
  const bool own = !counts_first_for_second();
  const auto items = static_cast<double>(own ? items_of(loss) : counts.items);
  return items * inverse(static_cast<double>(own ? loss.second_count : counts.samples));
}

// w_i of a micro-step's loss sum L_i. Tokens: 1; samples: samples_i / items_i, the mean loss times its samples; else
// the mean loss, 1 / items_i. Divided by the denominator too, unless that is deferred.
double LossScaling::weight(const MicroPlan& plan, const WindowCounts& micro, const WindowCounts& counts) const {
  double weight = 1.0;
  if (knobs_.normalizer == Normalizer::samples)
    weight = static_cast<double>(micro.samples) * inverse(static_cast<double>(micro.items));
  else if (!counts_items_ && bug_ != Bug::divide_by_own_size)
    weight = inverse(static_cast<double>(micro.items));
  return deferred_ ? weight : weight * inverse(denominator(plan.division, counts));
}

// f = c / denominator if deferred, else c: 1, or the number of ranks if a mean over them stands for a sum.
double LossScaling::factor(const MicroPlan& plan, const WindowCounts& counts) const {
  const double factor = deferred_ ? correction_ * inverse(denominator(plan.division, counts)) : correction_;
  if (bug_ != Bug::tail_by_steps || !counts_items_ || plan.window_size >= plan.steps) return factor;
  // The bug: a window of k < N micro-steps is divided by N instead of k.
  return factor * static_cast<double>(plan.window_size) / static_cast<double>(plan.steps);
}

// The ranks' numerators add up (agree()). Where gradients are averaged, so is the loss: their sum is divided by R.
double LossScaling::reduced(double numerator_sum) const {
  if (knobs_.reduce_when == ReduceWhen::never)  // a count over all ranks divides the sum itself
    return counts_items_ && deferred_ ? numerator_sum : numerator_sum / ranks_;
  return reduce_op_ == ReduceOp::mean ? numerator_sum / world_ : numerator_sum;
}

}  // namespace accrue
