// SPDX-License-Identifier: Apache-2.0
// Micro-steps of one window: the work of the window executor's operations. Losses stay on the device and are read at
// the boundary, before the rank pauses, and often enough for a live plot. Sums of losses and counts are local; the
// ranks agree on them at the boundary, with deferred normalisation.
//
// Until the last micro-step replicas make only these exchanges, all at the same place:
// - before the first micro-step the counts of the whole window, if each micro-step is divided by them (K6 eager
//   with K5 samples or tokens), or if a model has two losses with their own counts;
// - gradients, if the plan's micro-step says sync;
// - those of an evaluation or a checkpoint that is due inside the window.
// Ranks that hold parts of one model also exchange activations and their gradients in every micro-step.
//
// Dropout uses generators that are keyed anew before each forward (key_dropout()): a resumed run draws the same numbers
// as the uninterrupted one, and an evaluation in between changes nothing.
#include "train/train_window.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "accrue/parallel/random_streams.h"
#include "accrue/run/base/mix64.h"
#include "accrue/run/window/inside_windows.h"
#include "pipeline/window_executor.h"
#include "train/checkpointing.h"
#include "train/compute_device.h"
#include "train/evaluate.h"
#include "train/inspection.h"
#include "train/model_axis.h"
#include "update/clip_factor.h"

namespace accrue {
namespace {

/// Streams of the keys of key_dropout(). The values are arbitrary but fixed: others would draw other masks, and no
/// earlier run could be repeated.
constexpr std::uint64_t dropout_stream = 0xd0d0;
constexpr std::uint64_t tensor_dropout = 0xd0d1;
constexpr std::uint64_t part_dropout = 0xd0d2;
/// Time that a micro-step's loss may wait to be read: a frame of the studio.
constexpr std::int64_t publish_interval_ns = 33'000'000;
/// The interval on a device, which idles while its losses are read.
constexpr std::int64_t device_publish_interval_ns = 1'000'000'000;
/// Maximum number of micro-steps per list of operations.
constexpr std::int64_t longest_list = 4096;

/// Batches of the rest of the window, and the contents of the whole window over the ranks of the normaliser's scope.
struct CountedWindow {
  std::deque<Batch> batches;
  WindowCounts counts;
};

CountedWindow count_window(Training& training) {
  CountedWindow counted;
  // The window is a value: a copy looks ahead, and the run's own stays before its first micro-step.
  AccumulationWindow ahead = training.window;
  WindowCounts rest;
  while (const auto plan = ahead.next()) {
    Batch& batch = counted.batches.emplace_back(training.feed.batch(*plan));
    rest.items += batch.items;
    rest.samples += batch.samples;
    if (plan->update) break;
  }
  if (training.open.counted.samples > 0) {  // the window's beginning was counted before the interruption
    counted.counts = training.open.counted;
    return counted;
  }
  counted.counts = rest;
  if (!training.scaling.counts_over_ranks()) return counted;
  const auto sums =
      sum_over_ranks(training.mesh.data(), {static_cast<double>(rest.items), static_cast<double>(rest.samples), 0.0});
  counted.counts = {static_cast<std::int64_t>(sums[0]), static_cast<std::int64_t>(sums[1])};
  return counted;
}

/// Clips the partial sum of gradients after each micro-step (K11 every_micro_step). In Colossal-AI's replay a norm of 0
/// does not disable clipping: it zeroes the sum.
void clip_partial_sum(Training& training) {
  if (!training.driver.clips_partial_sums()) return;
  // Gradients still include the loss scale s, so the bound c is scaled with them: |s G| <= s c where |G| <= c.
  const double max_norm = training.spec().optimizer.clip_norm * training.loss_scale.factor();
  at::Tensor gradients = training.reducer.flat_gradients();
  if (max_norm <= 0.0) {
    if (training.plan().knobs.replays(Replay::clip_partial_sums)) gradients.zero_();
  } else if (training.plan().knobs.clip_kind == ClipKind::value) {
    gradients.clamp_(-max_norm, max_norm);
  } else {
    clip_flat_norm(gradients, max_norm);
  }
}

void reduce(Training& training) {
  training.model.demand_still_frozen();
  training.report.phase("reduce");
  // Bugs of the gallery that leave parameters out put the local gradients back behind the reduction.
  const at::Tensor kept = training.faults.keep_unreduced(training.reducer);
  training.driver.reduce();
  training.faults.put_back(training.reducer, kept);
}

/// Actions inside a window besides training.
bool evaluates_after(const Training& training, const MicroPlan& plan) {
  return due_after(training.spec(), plan, training.spec().evaluate.every_micro_steps);
}

bool saves_after(const Training& training, const MicroPlan& plan) {
  return !plan.update && checkpoint_due_inside(training, plan);
}

/// Micro-steps of one window on this rank, in the executor's order. On a pipeline several are in progress: a list then
/// has the whole window, and nothing but training happens inside it. Calls of a micro-step on a stage: begin(); for
/// each chunk starts(), on the last part weigh(), computed(); then backwards from the last chunk starts(), computed(),
/// finished(). The first chunk's finished() ends it.
class TrainedWindow final : public WindowWork {
 public:
  TrainedWindow(Training& training, WindowPass& pass, CountedWindow counted)
      : training_(training), pass_(pass), counted_(std::move(counted)) {}

  bool over() const { return over_; }
  /// The next list numbers its micro-steps from 0.
  void begins_list() { flights_.clear(); }

  bool begin(std::int64_t index) override {
    if (over_) return false;
    const auto plan = training_.driver.next();
    over_ = !plan;
    if (over_) return false;
    first_ = plan->micro_step - index;
    // On a pipeline several micro-steps are in progress, so it can stand still only between two windows.
    const bool may_hold = plan->position == 0 || stops_inside_windows(training_.spec());
    const auto catch_up = [&] {
      publish();
      report_held_before(training_, *plan);
    };
    if (may_hold && training_.channel.before_micro_step(plan->micro_step, catch_up).stop) {
      pass_.end = WindowEnd::stopped;
      over_ = true;
      return false;
    }
    training_.report.phase("data", plan->window + 1, plan->micro_step);
    const std::int64_t began = monotonic_ns();
    MicroStep now{.plan = *plan, .batch = fetch(*plan)};
    training_.report.spend("batch-generator", monotonic_ns() - began);
    pass_.tally.counts.items += now.batch.items;
    pass_.tally.counts.samples += now.batch.samples;
    now.samples = now.batch.samples;
    // The bug drops a batch that is already counted: its items stay in the divisor.
    if (training_.faults.leaves_out(*plan)) now.batch = {};
    now.end = training_.clock.mark();
    if (training_.faults.clears_before(*plan)) training_.reducer.zero_grad();
    flights_.insert_or_assign(index, std::move(now));
    return true;
  }

  const Batch& batch(std::int64_t index) override { return flights_.at(index).batch; }

  void starts(const PipelineOperation& operation) override {
    const MicroPlan& plan = flights_.at(operation.micro_step).plan;
    if (operation.action == PipelineAction::forward) {
      await_parameters(operation.chunk);
      training_.report.phase("forward", plan.window + 1, plan.micro_step);
      key_dropout(training_, plan.micro_step, operation.chunk);
      training_.hooks.starts(plan.position);
    } else {
      training_.report.phase("backward", plan.window + 1, plan.micro_step);
      cover_.emplace(training_.driver.cover(training_.faults.reduces(plan)));
    }
    training_.report.begins(operation, plan.micro_step);
    begin_ = training_.clock.mark();
    training_.report.computes(true);
  }

  void transfers(const PipelineOperation& operation) override {
    training_.report.begins(operation, first_ + operation.micro_step);
  }

  double weigh(std::int64_t index, LossSum& loss) override {
    MicroStep& now = flights_.at(index);
    if (loss.second.defined()) {
      const at::Tensor second = loss.second * training_.scaling.share_of_second(loss, divisor());
      now.first = loss.sum.detach();
      now.second = second.detach();
      // L = L1 + L2 items / samples, so that one divisor gives the sum of both means.
      loss.sum = loss.sum + second;
    }
    // Infinity passes into every gradient, as a float16 overflow does, and the usual checks must find it.
    if (training_.faults.overflows(now.plan)) loss.sum = loss.sum * std::numeric_limits<double>::infinity();
    // Kept until it is read, long after its graph and activations are gone.
    now.loss = {loss.sum.detach(), loss.count};
    now.divisor = items_of(loss);
    hold_in_forward(StepPhase::forward, now, PhaseFacts::unknown);
    now.weight = training_.scaling.weight(now.plan, {items_of(loss), now.samples}, divisor());
    hold_in_forward(StepPhase::scale, now, now.weight);
    // Backward starts from weight * loss scale * L; the boundary takes the loss scale out again.
    return now.weight * training_.loss_scale.factor();
  }

  void computed(const PipelineOperation& operation) override {
    MicroStep& now = flights_.at(operation.micro_step);
    const bool forward = operation.action == PipelineAction::forward;
    training_.report.computes(false);
    now.end = training_.clock.mark();
    ran_.push_back({forward ? ComputeKind::forward : ComputeKind::backward, now.plan.micro_step, operation.chunk,
                    std::move(begin_), now.end});
  }

  void finished(const PipelineOperation& operation) override {
    MicroStep& now = flights_.at(operation.micro_step);
    const MicroPlan plan = now.plan;
    // Backward ends on a stage's first chunk: the others' gradients are complete too.
    if (operation.chunk > 0) {
      cover_.reset();
      return;
    }
    const Weighed done = weighed(now);
    now.batch = {};
    done_.push_back(std::move(now));
    flights_.erase(operation.micro_step);
    if (!done.loss.sum.defined())  // a rank without a batch passes the same places as the others
      for (const StepPhase phase : {StepPhase::forward, StepPhase::scale}) hold_after(phase, plan, done);
    hold_after(StepPhase::backward, plan, done);
    // Another stage may still wait for this one's result: the window's sums are awaited after it was sent.
    reduces_after_ = pipelined() && plan.update && training_.faults.reduces(plan);
    if (!reduces_after_ && training_.faults.reduces(plan)) {
      reduce(training_);
      hold_after(StepPhase::reduce, plan, done);
    }
    // After the reduction, if there is one: all ranks then clip equal sums by equal factors.
    clip_partial_sum(training_);
    cover_.reset();
    if (plan.epoch_ends) training_.feed.drain(plan);
    training_.report.gauge_if_due();
    pass_.last = plan;
    pass_.micro_steps.push_back(plan);
    over_ = plan.update;
    if (plan.update) pass_.end = WindowEnd::boundary;
    between_micro_steps(plan);
  }

  /// Actions that a pipeline postpones until nothing is in progress.
  void after_list() {
    if (std::exchange(reduces_after_, false)) reduce(training_);
    if (!pipelined() || pass_.end != WindowEnd::boundary || !evaluates_after(training_, pass_.last)) return;
    publish();
    evaluate(training_);
  }

  /// Reports operations in order of execution, and finished micro-steps with their losses. Only here does it wait for a
  /// device.
  void publish() {
    training_.clock.settle();
    for (const Span& span : ran_) {
      const std::int64_t begin = training_.clock.ns(span.begin);
      const std::int64_t end = training_.clock.ns(span.end);
      training_.report.operation(span.kind, span.micro_step, span.chunk, begin, end);
      compute_ns_[span.micro_step] += end - begin;
    }
    ran_.clear();
    const std::vector<ReadLoss> losses = read_losses();
    for (std::size_t i = 0; i < done_.size(); ++i) publish(done_[i], losses[i]);
    done_.clear();
    published_ns_ = monotonic_ns();
  }

 private:
  struct Span {
    ComputeKind kind;
    std::int64_t micro_step;
    std::int64_t chunk;
    ComputeClock::Mark begin;
    ComputeClock::Mark end;
  };

  struct MicroStep {
    MicroPlan plan;
    Batch batch;
    std::int64_t samples = 0;
    LossSum loss = {};
    at::Tensor first = {};     ///< with two losses: the first one's share of the loss sum
    at::Tensor second = {};    ///< and the second one's
    std::int64_t divisor = 1;  ///< of the loss
    double weight = 0.0;
    ComputeClock::Mark end = {};
  };

  /// For a part that does not announce its parameters (training.cpp).
  void await_parameters(std::int64_t chunk) {
    if (training_.shard && !training_.model.parts()[static_cast<std::size_t>(chunk)]->says_what_it_uses())
      training_.shard->await(training_.model.range_of(chunk));
  }

  WindowCounts divisor() const { return divisor_of(counted_.counts, has_second_loss(training_.spec().model)); }

  bool pipelined() const { return !stops_inside_windows(training_.spec()); }

  struct Weighed {
    LossSum loss;
    std::int64_t divisor = 1;
    double weight = PhaseFacts::unknown;
  };

  static Weighed weighed(const MicroStep& now) { return {now.loss, now.divisor, now.weight}; }

  PhaseFacts facts_of(const Weighed& weighed) const {
    PhaseFacts facts;
    if (!weighed.loss.sum.defined()) return facts;
    facts.loss = weighed.loss.sum.to(at::kDouble).item<double>() / static_cast<double>(weighed.divisor);
    facts.weight = weighed.weight * training_.loss_scale.factor();
    return facts;
  }

  /// The pause does not count as time of the forward.
  void hold_in_forward(StepPhase phase, const MicroStep& now, double weight) {
    bool held = false;
    pass_phase(training_, phase, now.plan, [&] {
      held = true;
      training_.report.computes(false);
      ran_.push_back({ComputeKind::forward, now.plan.micro_step, 0, std::move(begin_), training_.clock.mark()});
      publish();
      return facts_of({now.loss, now.divisor, weight});
    });
    if (!held) return;
    begin_ = training_.clock.mark();
    training_.report.computes(true);
  }

  void hold_after(StepPhase phase, const MicroPlan& plan, const Weighed& weighed) {
    pass_phase(training_, phase, plan, [&] {
      publish();
      return facts_of(weighed);
    });
  }

  Batch fetch(const MicroPlan& plan) {
    if (counted_.batches.empty()) return training_.feed.batch(plan);
    Batch batch = std::move(counted_.batches.front());
    counted_.batches.pop_front();
    return batch;
  }

  void between_micro_steps(const MicroPlan& plan) {
    const bool evaluates = !pipelined() && evaluates_after(training_, plan);
    const bool saves = saves_after(training_, plan);
    const std::int64_t interval = training_.device.is_cpu() ? publish_interval_ns : device_publish_interval_ns;
    if (plan.update || evaluates || saves || monotonic_ns() - published_ns_ >= interval) publish();
    if (evaluates) evaluate(training_);
    if (saves) save_inside(training_, {pass_.tally, counted_.counts});
  }

  /// The loss sum of a micro-step, and the shares of two losses.
  struct ReadLoss {
    double sum = 0.0;
    double first = 0.0;
    double second = 0.0;
  };

  /// Reads those of finished micro-steps by one copy from the device; 0 if there was nothing to compute.
  std::vector<ReadLoss> read_losses() const {
    const bool two = has_second_loss(training_.spec().model);
    std::vector<at::Tensor> sums;
    const auto add_sum = [&](const at::Tensor& sum) {
      sums.push_back(sum.defined() ? sum.to(at::kDouble)
                                   : at::zeros({}, at::TensorOptions(at::kDouble).device(training_.device)));
    };
    for (const MicroStep& done : done_) {
      add_sum(done.loss.sum);
      if (!two) continue;
      add_sum(done.first);
      add_sum(done.second);
    }
    if (sums.empty()) return {};
    // [losses] in float64, or [3 losses] as (sum, first, second) of each micro-step.
    const at::Tensor all = at::stack(sums).cpu();
    const double* value = all.const_data_ptr<double>();
    std::vector<ReadLoss> losses(done_.size());
    for (ReadLoss& loss : losses) {
      loss.sum = *value++;
      if (!two) continue;
      loss.first = *value++;
      loss.second = *value++;
    }
    return losses;
  }

  static void add(LossTally& tally, double weight, double sum, double mean) {
    tally.numerator += weight * sum;
    tally.mean_sum += mean;
    tally.last_mean = mean;
  }

  void publish(const MicroStep& done, const ReadLoss& loss) {
    MicroResult result{.samples = done.samples,
                       .end_ns = training_.clock.ns(done.end),
                       .compute_ns = compute_ns_[done.plan.micro_step]};
    compute_ns_.erase(done.plan.micro_step);
    if (done.loss.sum.defined()) {
      const auto divisor = static_cast<double>(done.divisor);
      result.mean_loss = loss.sum / divisor;
      result.items = done.loss.count;
      // In order of execution: the bits of the sums do not depend on when a device is read.
      WindowTally& tally = pass_.tally;
      add(tally.loss, done.weight, loss.sum, result.mean_loss);
      add(tally.first, done.weight, loss.first, loss.first / divisor);
      add(tally.second, done.weight, loss.second, loss.second / divisor);
      ++tally.micro_steps;
      if (!std::isfinite(loss.sum) && tally.non_finite_micro_step == 0)
        tally.non_finite_micro_step = done.plan.micro_step;
    }
    // One rank of each replica, which has the loss, reports for all.
    if (training_.tensor.rank() == 0 && training_.mesh.last_stage()) training_.report.micro_step(done.plan, result);
  }

  Training& training_;
  WindowPass& pass_;
  CountedWindow counted_;
  std::map<std::int64_t, MicroStep> flights_;        ///< begun and unfinished, by index in the list
  std::vector<MicroStep> done_;                      ///< not yet published
  std::vector<Span> ran_;                            ///< not yet published
  std::map<std::int64_t, std::int64_t> compute_ns_;  ///< published time of micro-steps that are not yet published
  std::optional<Cover> cover_;
  ComputeClock::Mark begin_;  ///< of the current operation
  std::int64_t first_ = 0;    ///< micro-step with index 0 in the list
  std::int64_t published_ns_ = monotonic_ns();
  bool over_ = false;
  bool reduces_after_ = false;
};

}  // namespace

void key_dropout(const Training& training, std::int64_t micro_step, std::int64_t chunk) {
  const auto seed = static_cast<std::uint64_t>(training.spec().run.seed);
  // One key per (seed, replica if replicas differ, micro-step, part of the model); tensor ranks have a second stream.
  // By default replicas draw the same masks, as under Megatron-LM's _set_random_seed().
  const bool own = training.spec().parallel.data_parallel_random_init;
  const auto rank = static_cast<std::uint64_t>(own ? training.mesh.data().rank() : 0);
  // Part i of p stages is chunk i / p of stage i mod p (ModelShare).
  const std::int64_t part = chunk * training.mesh.grid().pipeline + training.mesh.at().pipeline;
  std::uint64_t key = mix64(seed ^ mix64(rank), dropout_stream, static_cast<std::uint64_t>(micro_step));
  if (part > 0) key = mix64(key, part_dropout, static_cast<std::uint64_t>(part));
  // Dropout of activations that tensor ranks hold parts of: each rank's own masks (random_streams.h).
  if (training.tensor.split())
    random_streams().seed(tensor_stream, training.device,
                          mix64(key, tensor_dropout, static_cast<std::uint64_t>(training.tensor.rank())));
  seed_generator(default_generator(training.device), key);
}

WindowPass train_window(Training& training) {
  WindowPass pass;
  CountedWindow counted;
  const bool second = has_second_loss(training.spec().model) && training.scaling.counts_first_for_second();
  if (training.scaling.counts_first() || second) {
    training.report.phase("data");
    counted = count_window(training);
  }
  // A window that a checkpoint was taken inside goes on from the sums that it had there.
  pass.tally = std::exchange(training.open, {}).tally;
  TrainedWindow work(training, pass, std::move(counted));
  // A window that never closes is as long as the run: the list is made in sections.
  while (!work.over()) {
    const auto next = training.window.peek();
    const std::int64_t planned = next ? next->window_size - next->position : 1;
    const std::int64_t longest = training.mesh.grid().pipeline > 1 ? planned : longest_list;
    const std::int64_t micro_steps = std::clamp<std::int64_t>(planned, 1, longest);
    work.begins_list();
    training.executor.run(training.executor.operations(pipeline_shape(training.spec().parallel, micro_steps)), work);
    work.after_list();
  }
  work.publish();
  return pass;
}

}  // namespace accrue
