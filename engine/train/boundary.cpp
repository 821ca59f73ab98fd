// SPDX-License-Identifier: Apache-2.0
// All deciding values are equal on all ranks: the agreed sums, and the norm of the reduced gradient. Beyond the
// agreement, a replica's ranks complete divided gradients and their norm, and under ZeRO the replicas gather their
// updates. So all ranks step, skip, pause or fail together. If ranks may hold different gradients, one more sum
// determines whether all are finite; otherwise there is no further exchange. Normalisation and clipping are one factor,
// applied in the optimizer's pass over memory.
#include "train/boundary.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "accrue/run/window/lr_curve.h"
#include "accrue/run/window/weight_decay.h"
#include "train/exactness_check.h"
#include "train/inspection.h"
#include "train/model_axis.h"
#include "train/parameter_norms.h"
#include "train/step_timer.h"
#include "update/judgement.h"

namespace accrue {
namespace {

/// Below it the gradients overflow without any scaling, so scaling down further does not help. It is 2^-16, as far
/// below 1 as DynamicScale::first is above.
constexpr double hopeless_scale = 1.0 / 65536.0;

struct Verdict {
  Agreement agreed;
  double factor = 0.0;  ///< of the gradient sum: f of loss_scaling.h, over the loss scale
  double loss = 0.0;
  NamedLosses losses;    ///< its parts
  NamedNumbers scalars;  ///< other reports of a train step
  Judgement gradient;
  StepOutcome outcome = StepOutcome::updated;
};

/// K17, with w_i, f and L_i of loss_scaling.h. by_denominator: f reduce(sum w_i L_i), the loss of which the update
/// takes the gradient. mean_of_micro: the mean of L_i / items_i over all micro-steps and ranks. last_micro: the mean
/// over ranks of the last one.
double reported_loss(const Training& training, const Agreement& agreed, const LossTally& tally, double factor) {
  const auto mean = [](double sum, std::int64_t count) { return count == 0 ? 0.0 : sum / static_cast<double>(count); };
  switch (training.plan().knobs.reported_loss) {
    case ReportedLoss::by_denominator:
      return factor * training.scaling.reduced(tally.numerator);
    case ReportedLoss::mean_of_micro:
      return mean(tally.mean_sum, agreed.total.micro_steps);
    case ReportedLoss::last_micro:
      return mean(tally.last_mean, agreed.ranks_with_loss);
  }
  return 0.0;
}

/// Parts of the loss, if two are known. Each is tallied separately, so a non-finite one does not affect the other.
NamedLosses parts_of_loss(const Training& training, const Agreement& agreed, double factor) {
  if (!training.splits_loss()) return {};
  return {{token_loss_name, reported_loss(training, agreed, agreed.total.first, factor)},
          {order_loss_name, reported_loss(training, agreed, agreed.total.second, factor)}};
}

/// Ranks with the same reduced gradient need no exchange. If they may differ, because they never reduce or have a
/// deliberate fault, one non-finite gradient makes every rank skip the update.
bool finite_everywhere(Training& training, bool finite) {
  const bool alike =
      training.plan().knobs.reduce_when != ReduceWhen::never && training.spec().teaching.bug == Bug::none;
  if (alike || training.mesh.world().size() == 1) return finite;
  return sum_over_ranks(training.mesh.world(), finite ? 0.0 : 1.0) == 0.0;
}

/// Whether the whole gradient is clipped, in this way.
bool clips_by(ClipKind kind, const Training& training) {
  const AccumulationKnobs& knobs = training.plan().knobs;
  return training.spec().optimizer.clip_norm > 0.0 && knobs.clip_kind == kind && knobs.clip_stage != ClipStage::none &&
         !training.driver.clips_partial_sums();
}

Verdict judge(Training& training, const WindowPass& pass) {
  Verdict verdict;
  WindowTally mine = pass.tally;
  mine.requests = training.channel.boundary_requests();
  training.report.phase("reduce");
  verdict.agreed = agree(training.mesh, mine);
  const WindowTally& total = verdict.agreed.total;
  const bool second = has_second_loss(training.spec().model);
  const WindowCounts divisor = divisor_of(total.counts, second);
  const double mean = training.scaling.factor(pass.last, divisor);
  verdict.loss = reported_loss(training, verdict.agreed, total.loss, mean);
  verdict.losses = parts_of_loss(training, verdict.agreed, mean);
  verdict.scalars = training.hooks.take_reports(Split::train);
  // Ranks that never reduce divide their own sums by their own counts.
  const bool alone = training.plan().knobs.reduce_when == ReduceWhen::never;
  const double factor = training.scaling.factor(pass.last, alone ? divisor_of(mine.counts, second) : divisor);
  verdict.factor = unscaled(training.loss_scale, factor);
  // A norm is of sums: partial gradients of the model axis are added up first.
  complete_gradients(training);
  const double max_norm = training.spec().optimizer.clip_norm;
  timed(training, timer_of_norm(training.loss_scale.enabled(), max_norm > 0.0), [&] {
    // |f G| = |f| |G|, so the norm is taken of the sum G as it lies there, and f acts where the optimizer reads G.
    // Squares add up in float64: those of scaled gradients cannot overflow the sum.
    const double norm = gradient_norm(training) * std::abs(verdict.factor);
    verdict.gradient = judge_norm(norm, clips_by(ClipKind::norm, training) ? max_norm : 0.0);
  });
  if (total.non_finite_micro_step > 0 || !std::isfinite(verdict.loss) ||
      !finite_everywhere(training, verdict.gradient.finite()))
    verdict.outcome = StepOutcome::skipped_overflow;
  else if (divisor.items == 0)
    verdict.outcome = StepOutcome::skipped_empty;
  return verdict;
}

std::string describe(const Training& training, const WindowPass& pass, const Verdict& verdict) {
  std::string text = "update " + std::to_string(pass.last.window + 1) + ": ";
  if (const std::int64_t rank = verdict.agreed.non_finite_rank; rank >= 0)
    text += "the loss of micro-step " + std::to_string(verdict.agreed.total.non_finite_micro_step) + " on rank " +
            std::to_string(rank) + " is not finite";
  else
    text +=
        "the gradient of the window that ends at micro-step " + std::to_string(pass.last.micro_step) + " is not finite";
  const std::string parameter = training.model.first_non_finite(training.reducer.flat_gradients());
  if (!parameter.empty()) return text + "; the first parameter with a non-finite gradient is " + parameter;
  // Other ranks may hold non-finite parts.
  const bool whole = training.mesh.model().size() == 1 && !training.shard;
  return whole ? text + "; the parameters' gradients are finite" : text;
}

/// Reports the problem and follows the rule: an error ends the run, a hold pauses before the next micro-step.
Result<void> treat_non_finite(Training& training, const WindowPass& pass, const Verdict& verdict) {
  // If losses are scaled, an overflow is part of finding the scale, until the scale has reached its minimum, or is too
  // small to be the cause.
  const double least = std::max(hopeless_scale, training.loss_scale.lowest);
  if (training.loss_scale.enabled() && training.loss_scale.scale > least &&
      training.plan().knobs.overflow != OverflowPolicy::raise)
    return {};
  const std::string message = describe(training, pass, verdict);
  const auto& asked = training.spec().accumulation.knobs.overflow;
  const bool leaves_out = asked && *asked != OverflowPolicy::raise;  // an explicit setting overrides the general rule
  const NonFiniteRule rule = leaves_out ? NonFiniteRule::skip : training.spec().run.on_non_finite;
  const bool pauses = rule == NonFiniteRule::pause && training.order.interactive;
  if (training.plan().knobs.overflow == OverflowPolicy::raise) {
    const char* hint = "accumulation.overflow = \"raise\" asked for this; \"hold\" leaves such updates out.";
    training.report.warn_first("numerics", message, hint);
    return fail(ErrorCode::numerics, message, {}, hint);
  }
  if (rule == NonFiniteRule::skip || pauses) {
    training.report.warn_first("numerics", message,
                               pauses       ? "Continue leaves this update out; stopping keeps the last checkpoint."
                               : leaves_out ? "The update is left out, as accumulation.overflow asks."
                                            : "The update is left out (run.on_non_finite = \"skip\").");
    if (pauses) training.channel.hold_here();
    return {};
  }
  const char* hint = "Lower optimizer.lr, set optimizer.clip_norm, or set run.on_non_finite = \"skip\".";
  training.report.warn_first("numerics", message, hint);
  return fail(ErrorCode::numerics, message, {}, hint);
}

/// Ranges of parameters that a backward of the window reached, on any rank. The others have no gradient and no update.
std::vector<FlatRange> reached_ranges(const Training& training) {
  const std::vector<bool> reached = training.reducer.reached();
  if (std::ranges::all_of(reached, std::identity{})) return {{0, training.model.layout().numel}};
  std::vector<FlatRange> ranges;
  for (std::size_t i = 0; i < reached.size(); ++i)
    // The others keep weights and moments: a gradient of 0 would decay both.
    if (reached[i]) ranges.push_back(training.model.layout().parameters[i]);
  std::ranges::sort(ranges, {}, &FlatRange::offset);
  return ranges;
}

/// Rates of the update at this micro-step: functions of the training before its window.
UpdateRates rates_at(const Training& training, const MicroPlan& plan) {
  // The plan has the position after this micro-step's ticks.
  const std::int64_t position = plan.schedule_position - plan.schedule_ticks;
  UpdateRates rates = lr_at(training.plan().curve, position);
  rates.decoupled_lr = lr_at(decoupled_curve(training.plan().curve, training.spec().optimizer), position);
  rates.weight_decay = weight_decay_at(training.plan().weight_decay, plan.samples_before);
  // Replay::scheduler_state: the rate of the resume, while the schedule moves on.
  if (const double frozen = training.cursor.frozen_lr; frozen >= 0.0) rates.lr = rates.decoupled_lr = frozen;
  return rates;
}

/// Under ZeRO only this rank's share.
void update_masters(Training& training, const at::Tensor& gradients, const UpdateRates& rates, double scale) {
  const bool copies = training.masters.copied();
  // gradients: [numel] in the type of K16. masters, own: [numel], under ZeRO [elements of this rank's share], in
  // float32 for half-precision parameters and else in their type.
  at::Tensor masters = training.masters.values();
  at::Tensor own = gradients;
  if (copies) timed(training, "optimizer-copy-to-main-grad", [&] { own = training.masters.as_master(gradients); });
  std::vector<FlatRange> reached = reached_ranges(training);
  if (training.shard) reached = training.shard->packed(reached);
  timed(training, "optimizer-inner-step", [&] { training.optimizer->step(masters, own, rates, scale, reached); });
  if (!copies) return;
  training.await_parameters();  // of the last update, if no forward needed all of them
  // Half-precision parameters are rounded here. The masters keep what is lost, so small steps add up over updates.
  timed(training, "optimizer-copy-main-to-model-params", [&] { training.masters.put_back(); });
  if (training.shard) training.shard->gather(training.model.flat(), training.spec().parallel.overlap_param_gather);
}

void step(Training& training, const MicroPlan& plan, const Verdict& verdict, UpdateRates rates, PhaseFacts& facts) {
  const OptimizerSpec& optimizer = training.spec().optimizer;
  training.report.phase("step");
  at::Tensor gradients = training.reducer.flat_gradients();
  double scale = verdict.factor * verdict.gradient.clip;
  // FusedLAMB compares it with a bound of its own, so it is that of the clipped gradient.
  rates.gradient_norm = *verdict.gradient.norm * verdict.gradient.clip;
  if (clips_by(ClipKind::norm, training)) facts.clip = verdict.gradient.clip;
  if (clips_by(ClipKind::value, training)) {
    // clamp(s G) is not s clamp(G): factors must act first, so this pass rewrites the arena, and the optimizer reads it
    // with a factor of 1. FusedLAMB's own clipping then needs the norm of the clamped gradient.
    timed(training, clip_timer, [&] {
      gradients.mul_(scale).clamp_(-optimizer.clip_norm, optimizer.clip_norm);
      scale = 1.0;
      if (optimizer.kind == OptimizerKind::fused_lamb) rates.gradient_norm = gradient_norm(training);
    });
  }
  pass_phase(training, StepPhase::clip, plan, [&] { return facts; });
  const ComputeClock::Mark begin = training.clock.mark();
  update_masters(training, gradients, rates, scale);
  const ComputeClock::Mark end = training.clock.mark();
  training.clock.settle();
  training.report.operation(ComputeKind::step, plan.micro_step, 0, training.clock.ns(begin), training.clock.ns(end));
}

double epochs_done(const Training& training, const MicroPlan& plan) {
  const auto length = static_cast<double>(training.plan().window.batches_per_epoch);
  return static_cast<double>(plan.epoch) + static_cast<double>(plan.batch + 1) / length;
}

void move_cursor(Training& training, const Verdict& verdict) {
  TrainingCursor& cursor = training.cursor;
  cursor.window = training.window.position();
  training.note_scale(cursor);
  cursor.optimizer_steps = training.optimizer->steps();
  // Samples of a skipped update count: they were read, and are not read again.
  cursor.samples += verdict.agreed.total.counts.samples;
  cursor.tokens += verdict.agreed.total.counts.items;
  cursor.seconds = training.report.seconds();
  if (verdict.outcome == StepOutcome::skipped_empty)
    ++cursor.empty_windows;
  else
    cursor.loss = verdict.loss;
  if (verdict.outcome == StepOutcome::skipped_overflow) ++cursor.overflowed_windows;
}

void report_update(Training& training, const MicroPlan& plan, const Verdict& verdict, double lr,
                   const UpdateMeasurement& measured) {
  const TrainingCursor& cursor = training.cursor;
  Update update{.update = cursor.update(),
                .micro_step = plan.micro_step,
                .samples = cursor.samples,
                .tokens = cursor.tokens,
                .epoch = epochs_done(training, plan),
                .loss = verdict.loss,
                .lr = lr,
                .grad_norm = verdict.gradient.norm,
                .outcome = verdict.outcome,
                .seconds = cursor.seconds,
                .compute_seconds = training.report.compute_seconds(),
                .reason = std::string(to_string(plan.reason)),
                .steps = training.window.position().steps(),
                .dropped_batches = plan.dropped_after,
                .losses = verdict.losses,
                .scalars = verdict.scalars,
                .empty_windows = cursor.empty_windows,
                .overflowed_windows = cursor.overflowed_windows};
  measured.put_into(update);
  if (training.loss_scale.enabled()) update.loss_scale = training.loss_scale.scale;
  training.scalars.add(update, static_cast<double>(verdict.agreed.total.counts.samples), training.report.take_timers());
  if (!training.report.first()) return;
  if (training.spec().run.record_weights) {
    training.await_parameters();
    update.weights = training.model.weights();
  }
  training.channel.send(std::move(update));
}

/// Sets N for the windows from here on: as requested now, or as in the run that is continued. A rank that receives the
/// command a boundary later requests the current N.
void change_steps(Training& training, std::int64_t requested) {
  const std::int64_t set = training.window.position().next_steps();
  const bool keeps =
      set > 0 ? requested == set
              : requested == training.plan().window.steps && !has_length_schedule(training.plan().knobs.group_length);
  const bool changes = requested > 0 && !keeps;
  if (changes) training.window.change_steps(requested);
  if (!changes && !training.window.steps_set_here()) return;
  training.cursor.window = training.window.position();
  training.report.from_first(StepsChanged{.update = training.cursor.update(),
                                          .micro_step = training.cursor.micro_step(),
                                          .steps = training.cursor.window.next_steps(),
                                          .repeated = !changes});
}

/// Whether the window has as many micro-steps as the plan says, all of them done here.
bool is_full(const Training& training, const WindowPass& pass) {
  return std::ssize(pass.micro_steps) == training.plan().window.steps;
}

}  // namespace

Result<BoundaryRequests> pass_boundary(Training& training, const WindowPass& pass) {
  const Verdict verdict = judge(training, pass);
  if (verdict.outcome == StepOutcome::skipped_overflow)
    if (auto treated = treat_non_finite(training, pass, verdict); !treated) return tl::unexpected(treated.error());
  // Before the update, because the check needs the parameters at which the window's gradients were taken.
  if (verdict.outcome == StepOutcome::updated && exactness_due(training, pass))
    check_exactness(training, pass, verdict.factor);
  const MicroPlan& plan = pass.last;
  PhaseFacts facts{.loss = verdict.loss, .factor = verdict.factor};
  const auto known = [&facts] { return facts; };
  pass_phase(training, StepPhase::unscale, plan, known);
  const UpdateRates rates = rates_at(training, plan);
  const UpdateMeasurement measured(training);
  // From here on the parameters and the window belong to the next update.
  training.driver.step([&] {
    if (verdict.outcome == StepOutcome::updated) {
      step(training, plan, verdict, rates, facts);
      pass_phase(training, StepPhase::step, plan, known);
    }
    return verdict.outcome;
  });
  pass_phase(training, StepPhase::schedule, plan, known);
  // For the next window. This one's scale is in verdict.factor.
  training.loss_scale.after(verdict.outcome);
  training.driver.clear([&] { training.reducer.zero_grad(); });
  move_cursor(training, verdict);
  report_update(training, plan, verdict, rates.lr, measured);
  training.report.window_done(verdict.outcome == StepOutcome::updated && is_full(training, pass));
  change_steps(training, verdict.agreed.total.requests.steps);
  pass_phase(training, StepPhase::zero, plan, known);
  return verdict.agreed.total.requests;
}

}  // namespace accrue
