// SPDX-License-Identifier: Apache-2.0
// The verdict is measured; the reason is found by experiment. Each known mistake predicts a gradient from those of the
// single micro-steps (all weighed alike, the last one alone, ...); the prediction that matches the run's gradient is
// the reason. So a reason never comes from the spec, only from computed gradients. A plug-in library's code is unknown:
// shown_reason.h removes one possible cause after another. All comparisons are in float64.
#include "train/exactness_check.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/plan/exactness.h"
#include "accrue/run/whatif/bug_gallery.h"
#include "train/float64_copy.h"
#include "train/gradient_figures.h"
#include "train/shown_reason.h"
#include "train/train_window.h"

namespace accrue {
namespace {

/// Scope that restores gradients, and the buffers of a user's model. A check reports nothing else.
class KeptGradients {
 public:
  explicit KeptGradients(Training& training)
      : hooks_(training.hooks),
        reducer_(training.reducer),
        flat_(reducer_.flat_gradients().clone()),
        reached_(reducer_.reached()),
        buffers_(training.model.buffers()),
        generator_(default_generator(at::kCPU)),
        drawn_(generator_.get_state()) {
    if (const at::Tensor lost = reducer_.flat_compensation(); lost.defined()) lost_ = lost.clone();
    for (const auto& [name, buffer] : buffers_) values_.push_back(buffer.clone());
  }
  ~KeptGradients() {
    const at::NoGradGuard no_grad;
    generator_.set_state(drawn_);
    for (std::size_t i = 0; i < values_.size(); ++i) buffers_[i].second.copy_(values_[i]);
    hooks_.drop_reports();
    reducer_.zero_grad();
    reducer_.flat_gradients().copy_(flat_);
    reducer_.set_reached(reached_);
    if (lost_.defined()) reducer_.flat_compensation().copy_(lost_);
  }
  KeptGradients(const KeptGradients&) = delete;
  KeptGradients& operator=(const KeptGradients&) = delete;

 private:
  const RunHooks& hooks_;
  DistributedDataParallel& reducer_;
  at::Tensor flat_;
  at::Tensor lost_;
  std::vector<bool> reached_;
  NamedTensors buffers_;
  std::vector<at::Tensor> values_;  ///< of the buffers
  at::Generator generator_;         ///< used by a library's data
  at::Tensor drawn_;                ///< its state
};

/// Gradient of the loss sum over samples, and its items, with the micro-step's own random numbers. Shapes: [numel of
/// the arena] in float64, 0 in padding. No exchange.
SampleGradient gradient_of(Training& training, const std::vector<std::int64_t>& samples, std::int64_t micro_step) {
  training.reducer.zero_grad();
  SampleGradient gradient;
  if (!samples.empty()) {
    const Batch batch = training.data->batch(Split::train, samples);
    key_dropout(training, micro_step, 0);
    const LossSum loss = training.model.undivided().whole_loss(batch);
    const auto quiet = training.reducer.no_sync();
    loss.sum.backward();
    gradient.items = static_cast<double>(loss.count);
  }
  // With compensation the sum is already in the arena, whatever the views are.
  gradient.sum = training.reducer.flat_gradients().to(at::kDouble);
  if (gradient.sum.is_same(training.reducer.flat_gradients())) gradient.sum = gradient.sum.clone();
  return gradient;
}

/// Samples of a micro-step on this rank; `repeats`: with those that only fill up its batch.
std::vector<std::int64_t> samples_of(Training& training, const MicroPlan& micro, bool repeats) {
  auto samples = training.feed.samples(micro.epoch, micro.batch);
  const SampleOrder& order = training.plan().order;
  const auto fresh = static_cast<std::size_t>(order.fresh(micro.batch, training.mesh.data().rank()));
  if (!repeats && fresh < samples.size()) samples.resize(fresh);
  return samples;
}

/// The worst of all ranks, so that all judge alike.
ExactnessFigures compare(Training& training, const at::Tensor& found, const at::Tensor& wanted) {
  // cosine = f . w / (|f| |w|), ratio = f . w / |w|^2.
  const double lengths = length_of(found) * length_of(wanted);
  const double along = at::dot(found, wanted).item<double>();
  const double square = at::dot(wanted, wanted).item<double>();
  ExactnessFigures figures;
  figures.max_abs = largest(training, (found - wanted).abs().max().item<double>());
  figures.relative = largest(training, relative_difference(found, wanted));
  // The least cosine of any rank: min x = -max(-x).
  figures.cosine = -largest(training, -(lengths > 0.0 ? along / lengths : 1.0));
  figures.ratio = largest(training, square > 0.0 ? along / square : 1.0);
  return figures;
}

/// Fraction of elements that differ between a rank and the first one: 0 if all ranks hold the same. A reduction gives
/// all ranks the same bits, so there is no tolerance. Elements that are 0 on both ranks, such as padding, say nothing.
double differing_part(Training& training, const at::Tensor& found) {
  at::Tensor first = found.clone();
  training.mesh.data().broadcast(first, 0);
  const at::Tensor differs = found.ne(first);
  const at::Tensor used = found.ne(0.0).logical_or(first.ne(0.0));
  const double count = used.sum().item<double>();
  return largest(training, count > 0.0 ? differs.sum().item<double>() / count : 0.0);
}

/// Gradients that known mistakes would have made, tried one after another.
class Explanation {
 public:
  Explanation(Training& training, const WindowPass& pass, const at::Tensor& found, const at::Tensor& wanted,
              double tolerance)
      : training_(training), pass_(pass), found_(found), wanted_(wanted), tolerance_(tolerance) {
    for (const MicroPlan& micro : pass.micro_steps) {
      fresh_.push_back(gradient_of(training_, samples_of(training_, micro, false), micro.micro_step));
      const bool repeats = samples_of(training_, micro, true) != samples_of(training_, micro, false);
      all_.push_back(repeats ? gradient_of(training_, samples_of(training_, micro, true), micro.micro_step)
                             : fresh_.back());
    }
    fresh_items_ = summed(training_, items(fresh_));
    all_items_ = summed(training_, items(all_));
  }

  ExactnessReason find() {
    const ModelSpec model = Faults::model(training_.spec());
    // k micro-steps in this window, n planned. g_i: gradient of micro-step i's loss sum, with items_i.
    const auto k = static_cast<double>(fresh_.size());
    const auto n = static_cast<double>(pass_.last.steps);
    const auto ranks = static_cast<double>(training_.mesh.data().size());
    const auto each = [](const SampleGradient& micro) { return micro.sum; };
    const auto mean = [](const SampleGradient& micro) { return micro.mean(); };
    // sum g_i / sum items_i: the window is divided correctly, so the model itself makes the difference.
    if (meets(total(fresh_, each) / fresh_items_)) {
      if (training_.hooks.any()) return shown_reason(training_, fresh_samples(), found_, tolerance_);
      return model.batch_norm      ? ExactnessReason::batch_norm
             : model.dropout > 0.0 ? ExactnessReason::dropout
             : is_rounding()       ? ExactnessReason::order_of_sums
                                   : ExactnessReason::unexplained;
    }
    if (all_items_ != fresh_items_ && meets(total(all_, each) / all_items_)) return ExactnessReason::repeated_samples;
    if (fresh_items_ <= 0.0) return ExactnessReason::unexplained;
    // sum of g_i / items_i: each micro-step's mean, averaged over the ranks.
    const at::Tensor means = total(all_, mean) / ranks;
    // Divided by the planned N instead of the window's k.
    if (k < n && (meets(means / n) || meets(total(fresh_, each) / fresh_items_ * (k / n))))
      return ExactnessReason::tail_policy;
    // With batches of equal size mean_of_means predicts the same, so the normalizer decides the name.
    if (training_.plan().knobs.normalizer == Normalizer::samples && is_weighed_by_samples())
      return ExactnessReason::weighed_by_samples;
    if (meets(means / k)) return ExactnessReason::mean_of_means;
    if (meets(means)) return ExactnessReason::divisor;
    // Sums in place of means: the loss is multiplied by the micro-batch's own size.
    if (meets(total(all_, each) / ranks / k)) return ExactnessReason::own_size;
    if (k > 1 && is_last_alone(k, n, ranks)) return ExactnessReason::cleared;
    if (k > 1 && misses_one(k, n, ranks)) return ExactnessReason::left_out;
    if (training_.plan().knobs.clip_stage == ClipStage::every_micro_step) return ExactnessReason::clipped;
    if (is_scaled(total(fresh_, each))) return ExactnessReason::divisor;
    return training_.hooks.any() ? shown_change(training_, fresh_samples()) : ExactnessReason::unexplained;
  }

 private:
  using Part = std::function<at::Tensor(const SampleGradient&)>;

  static double items(const std::vector<SampleGradient>& micro_steps) {
    double sum = 0.0;
    for (const SampleGradient& micro : micro_steps) sum += micro.items;
    return sum;
  }

  /// Sum over all micro-steps except `without`, and all ranks.
  at::Tensor total(const std::vector<SampleGradient>& micro_steps, const Part& part,
                   std::optional<std::size_t> without = std::nullopt) {
    at::Tensor sum = at::zeros_like(found_);
    for (std::size_t i = 0; i < micro_steps.size(); ++i)
      if (i != without) sum.add_(part(micro_steps[i]));
    return summed(training_, sum);
  }

  bool meets(const at::Tensor& predicted) {
    // The prediction adds in another order than the run, so it has a rounding error of its own.
    return largest(training_, relative_difference(found_, predicted)) <= 4.0 * tolerance_;
  }

  /// Whether rounding explains the difference.
  bool is_rounding() {
    double lengths = 0.0;
    for (const SampleGradient& micro : fresh_) lengths += length_of(micro.sum);
    // wanted_ is a mean over items: times their number it is a sum, as each g_i is.
    const double length = length_of(wanted_) * fresh_items_;
    return largest(training_, relative_difference(found_, wanted_)) <=
           rounding_bound(tolerance_, summed(training_, lengths), length);
  }

  std::vector<MicroSamples> fresh_samples() {
    std::vector<MicroSamples> all;
    for (const MicroPlan& micro : pass_.micro_steps)
      all.push_back({samples_of(training_, micro, false), micro.micro_step});
    return all;
  }

  /// Whether it is (sum of samples_i g_i / items_i) / (sum of samples_i).
  bool is_weighed_by_samples() {
    at::Tensor sum = at::zeros_like(found_);
    double samples = 0.0;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const auto held = static_cast<double>(samples_of(training_, pass_.micro_steps[i], true).size());
      sum.add_(all_[i].mean() * held);
      samples += held;
    }
    return meets(summed(training_, sum) / summed(training_, samples));
  }

  /// Whether it is another multiple of the same direction, as from ranks that sum separately divided gradients.
  bool is_scaled(const at::Tensor& wanted) {
    const double square = at::dot(wanted, wanted).item<double>();
    // The multiple c that minimises |found - c wanted| is f . w / |w|^2.
    return square > 0.0 && meets(wanted * (at::dot(found_, wanted).item<double>() / square));
  }

  bool is_last_alone(double k, double n, double ranks) {
    // Only the last g_i is left, divided as the whole window would be.
    const at::Tensor sum = summed(training_, all_.back().sum.clone());
    const at::Tensor mean = summed(training_, all_.back().mean().clone()) / ranks;
    // By the window's items, its size or N: one of them is what the normalizer divides by.
    return meets(sum / all_items_) || meets(mean / k) || meets(mean / n);
  }

  bool misses_one(double k, double n, double ranks) {
    const auto each = [](const SampleGradient& micro) { return micro.sum; };
    const auto mean = [](const SampleGradient& micro) { return micro.mean(); };
    for (std::size_t i = 0; i < all_.size(); ++i) {
      // All but g_i, divided as the whole window would be.
      const at::Tensor rest = total(all_, mean, i) / ranks;
      if (meets(total(all_, each, i) / all_items_) || meets(rest / k) || meets(rest / n)) return true;
    }
    return false;
  }

  Training& training_;
  const WindowPass& pass_;
  const at::Tensor& found_;
  const at::Tensor& wanted_;
  double tolerance_;
  std::vector<SampleGradient> fresh_;  ///< by micro-step: of samples new in the epoch
  std::vector<SampleGradient> all_;    ///< of all its samples
  double fresh_items_ = 0.0;
  double all_items_ = 0.0;
};

/// Gradient of all samples of the window in one batch over all ranks, as a sum over items.
/// Its dropout masks are those of the window's last micro-step: with dropout, several micro-steps cannot match it.
SampleGradient one_shot(Training& training, const WindowPass& pass) {
  std::vector<std::int64_t> samples;
  for (const MicroPlan& micro : pass.micro_steps) {
    const auto own = samples_of(training, micro, false);
    samples.insert(samples.end(), own.begin(), own.end());
  }
  SampleGradient gradient = gradient_of(training, samples, pass.last.micro_step);
  gradient.sum = summed(training, std::move(gradient.sum));
  gradient.items = summed(training, gradient.items);
  return gradient;
}

/// Costs that change no number: exchanges beyond the plan without its bug, and the pace of the schedule.
ExactnessReason hidden_cost(const Training& training, const WindowPass& pass, ExactnessCheck& check) {
  WindowShape shape = training.plan().window;
  shape.knobs = resolve_knobs(training.spec().accumulation);
  const bool planned_each = shape.knobs.reduce_when == ReduceWhen::every_micro_step;
  check.needed = shape.knobs.reduce_when == ReduceWhen::never ? 0 : planned_each ? std::ssize(pass.micro_steps) : 1;
  for (const MicroPlan& micro : pass.micro_steps) check.reductions += training.faults.reduces(micro) ? 1 : 0;
  if (training.mesh.data().size() > 1 && check.reductions > check.needed) return ExactnessReason::wasted_reductions;
  // A schedule that counts samples cannot run ahead of them.
  if (training.spec().teaching.bug == Bug::none || shape.schedule_in_samples) return ExactnessReason::none;
  shape.steps_set = training.window.shape().steps_set;
  // The same plan without the bug, after as many micro-steps.
  AccumulationWindow planned(shape);
  planned.seek(pass.last.micro_step);
  const bool at_pace = planned.schedule_position() == pass.last.schedule_position;
  return at_pace ? ExactnessReason::none : ExactnessReason::schedule_clock;
}

ExactnessReason reason_of(Training& training, const WindowPass& pass, const at::Tensor& found, const at::Tensor& wanted,
                          double tolerance, double differing) {
  // A missing reduction makes every used element differ, a partial one some.
  if (differing >= 1.0) return ExactnessReason::ranks_differ;
  if (differing > 0.0) return ExactnessReason::part_not_reduced;
  return Explanation(training, pass, found, wanted, tolerance).find();
}

}  // namespace

bool exactness_due(const Training& training, const WindowPass& pass) {
  const std::int64_t every = training.spec().evaluate.exactness_every;
  const bool whole = !pass.micro_steps.empty() && pass.micro_steps.front().position == 0;
  return every > 0 && whole && (pass.last.window + 1) % every == 0;
}

void check_exactness(Training& training, const WindowPass& pass, double factor) {
  training.report.phase("verify");
  const std::int64_t begin = monotonic_ns();
  const double tolerance = exactness_tolerance(training.spec().model.dtype);
  ExactnessCheck check{.update = pass.last.window + 1, .tolerance = tolerance};
  {
    const KeptGradients kept(training);
    // The gradient of the update before clipping: the reduced sum times f, without the loss scale.
    const at::Tensor found = training.reducer.flat_gradients().to(at::kDouble) * factor;
    const at::Tensor wanted = one_shot(training, pass).mean();
    const ExactnessFigures figures = compare(training, found, wanted);
    const double differing = differing_part(training, found);
    auto reason = ExactnessReason::none;
    if (differing > 0.0 || !(figures.relative <= tolerance))
      reason = reason_of(training, pass, found, wanted, tolerance, differing);
    const Exactness verdict = judge(figures, tolerance, reason);
    if (const auto cost = hidden_cost(training, pass, check); reason == ExactnessReason::none) reason = cost;
    // A window that a bug did not affect must not be reported as a run without one.
    const Bug bug = training.spec().teaching.bug;
    if (reason == ExactnessReason::none && bug != Bug::none) reason = ExactnessReason::bug_idle;
    check.max_abs = figures.max_abs;
    check.relative = figures.relative;
    check.cosine = figures.cosine;
    check.ratio = figures.ratio;
    check.verdict = to_string(verdict);
    check.reason = to_string(reason);
    check.message = reason == ExactnessReason::bug_idle ? explain_idle_window(bug) : explain(reason);
  }
  check.seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  training.report.from_first(std::move(check));
}

}  // namespace accrue
