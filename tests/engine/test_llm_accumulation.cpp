// SPDX-License-Identifier: Apache-2.0
// llm-pytorch's accumulation under its own names: the ten-batch case by hand, the documented schedule, every gate, what
// is saved, mixed precision inside the wrapper, and the defects that are replayed only on request.
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <QTest>
#include <functional>
#include <limits>
#include <set>
#include <stdexcept>

#include "accrue/accumulation/llm.h"
#include "accrue/accumulation/llm_amp.h"
#include "support/refusals.h"
#include "support/ten_batches.h"
#include "support/test_program.h"

namespace test_llm_accumulation {

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A reducer that notes what it is asked.
struct NotedSync : GradSync {
  bool sync_enabled() const override { return enabled; }
  void set_sync_enabled(bool value) override { enabled = value; }
  void finish() override { finished_after.push_back(backwards); }
  bool enabled = true;
  int backwards = 0;
  std::vector<bool> enabled_in_backward;
  std::vector<int> finished_after;  ///< backwards done when finish() was called
};

/// Tells the reducer of each backward, as hooks on parameters would.
struct Watching : OptimizerWrapper {
  Watching(torch::optim::Optimizer& optimizer, NotedSync& reducer) : OptimizerWrapper(optimizer), sync(reducer) {}
  void backward(const at::Tensor& loss, BackwardOptions options) override {
    sync.enabled_in_backward.push_back(sync.enabled);
    ++sync.backwards;
    OptimizerWrapper::backward(loss, options);
  }
  StepOutcome step(const Closure& closure) override {
    if (fails) throw std::runtime_error("the inner step failed");
    return OptimizerWrapper::step(closure);
  }
  NotedSync& sync;
  bool fails = false;
};

struct LoopResult {
  int updates = 0;
  std::vector<int> updated_at;       ///< micro-steps, from 1
  std::string positions;             ///< of the schedule, one digit per micro-step
  std::vector<int> position_in_use;  ///< by each update
};

/// The documented loop over `epochs` of ten batches.
LoopResult train(Line& line, BaseOptimizer& optimizer, BaseScheduler& scheduler, const LambdaLR& schedule, int epochs) {
  LoopResult result;
  int m = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (const int b : ten_batches()) {
      ++m;
      optimizer.zero_grad();
      optimizer.backward(line.loss(b));
      if (optimizer.step() == StepOutcome::updated) {
        ++result.updates;
        result.updated_at.push_back(m);
        result.position_in_use.push_back(static_cast<int>(schedule.position()));
      }
      scheduler.step();
      result.positions += std::to_string(schedule.position());
    }
  }
  return result;
}

}  // namespace

class TestLlmAccumulation : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void ten_batches_give_the_documented_weights_data() {
    const double first = group_factor({1, 2, 3, 4}, 4), second = group_factor({5, 6, 7, 8}, 4);
    const double across = group_factor({9, 10, 1, 2}, 4), third = group_factor({3, 4, 5, 6}, 4);
    const double fourth = group_factor({7, 8, 9, 10}, 4);
    QTest::addColumn<int>("epochs");
    QTest::addColumn<int>("updates");
    QTest::addColumn<double>("weight");
    QTest::addColumn<double>("left");
    const double w1 = weight_after({first, second});
    const double w3 = weight_after({first, second, across, third, fourth, first, second});
    QTest::newRow("one epoch") << 1 << 2 << 0.95475 << -94.595125;
    QTest::newRow("two epochs") << 2 << 5 << weight_after({first, second, across, third, fourth}) << 0.0;
    QTest::newRow("three epochs") << 3 << 7 << w3 << 2.0 * (81 + 100) / 4 * (w3 - 2.0);
    ACCRUE_NEAR(w1, 0.95475);
  }
  void ten_batches_give_the_documented_weights() {
    QFETCH(int, epochs);
    QFETCH(int, updates);
    auto [line, sgd] = SgdLine();
    LambdaLR constant(sgd, [](std::int64_t) { return 1.0; });
    auto [optimizer, scheduler] = llm::initialize(nullptr, sgd, constant, 4);
    QCOMPARE(train(line, *optimizer, *scheduler, constant, epochs).updates, updates);
    QFETCH(double, weight);
    QFETCH(double, left);
    ACCRUE_NEAR(line.weight(), weight);
    optimizer->zero_grad();  // clears what was applied, and nothing else
    ACCRUE_NEAR(line.gradient(), left);
  }

  void updates_and_the_schedule_stand_where_the_table_says() {
    auto [line, sgd] = SgdLine();
    auto decay = decay_of(sgd);
    auto [optimizer, scheduler] = llm::initialize(nullptr, sgd, decay, 4);
    const LoopResult result = train(line, *optimizer, *scheduler, decay, 2);
    QCOMPARE(result.updated_at, (std::vector<int>{4, 8, 12, 16, 20}));
    QCOMPARE(result.positions.substr(0, 10), std::string("0001111222"));
    QCOMPARE(result.position_in_use, (std::vector<int>{0, 1, 2, 3, 4}));
    QCOMPARE(decay.position(), std::int64_t{20 / 4});  // the length to configure: all micro-steps / N
  }

  void every_micro_step_is_divided_by_n_also_in_a_tail() {
    auto [line, sgd] = SgdLine();
    llm::GradientAccumulationOptimizer optimizer(sgd, nullptr, 4);
    for (const int b : ten_batches()) {
      optimizer.zero_grad();
      const double before = line.gradient(), d = line.weight() - 2.0;
      const at::Tensor loss = line.loss(b);
      optimizer.backward(loss);
      ACCRUE_NEAR(line.gradient() - before, 2.0 * b * b * d / 4.0);
      ACCRUE_NEAR(loss.item<double>(), b * b * d * d);  // the caller's loss is untouched
      optimizer.step();
    }
  }

  void the_documented_schedule_takes_ten_rates_in_99_micro_steps() {
    Line line;
    torch::optim::Adam adam({line.w}, torch::optim::AdamOptions(0.1));
    auto decay = decay_of(adam);
    auto [optimizer, scheduler] = llm::initialize(nullptr, adam, decay, 10);
    std::set<double> rates;
    for (int i = 0; i < 99; ++i) {
      QCOMPARE(optimizer->accumulation_boundary(), i % 10 == 0);
      QCOMPARE(llm::accumulation_boundary(*optimizer), i % 10 == 0);
      optimizer->zero_grad();
      optimizer->backward(line.loss(1.0));
      QCOMPARE(optimizer->step(), i % 10 == 9 ? StepOutcome::updated : StepOutcome::accumulated);
      scheduler->step();
      const double rate = scheduler->get_last_lr().at(0);
      rates.insert(rate);
      ACCRUE_NEAR(rate, 0.1 * std::pow(0.9, (i + 1) / 10));
      ACCRUE_NEAR(learning_rates(adam).at(0), rate);
      if (i <= 8) ACCRUE_NEAR(rate, 0.1);
      if (i >= 9 && i <= 18) ACCRUE_NEAR(rate, 0.09);
      if (i >= 89) ACCRUE_NEAR(rate, 0.0387420489);
    }
    QCOMPARE(rates.size(), std::size_t{10});
  }

  void linear_warmup_rises_to_the_rate_and_falls_to_zero() {
    auto [line, sgd] = SgdLine(0.1);
    llm::LinearWarmupLR schedule(sgd, 5, 20);
    std::vector<double> rates;
    for (int s = 0; s <= 21; ++s) {
      const double factor = s < 5 ? (s + 1) / 6.0 : std::max((20 - s) / 15.0, 0.0);
      ACCRUE_NEAR(learning_rates(sgd).at(0), 0.1 * factor);
      rates.push_back(schedule.get_last_lr().at(0));
      schedule.step();
    }
    QVERIFY(near(rates[0], 0.0166667, 5e-8));
    QCOMPARE(rates[5], 0.1);
    QVERIFY(near(rates[19], 0.0066667, 5e-8));
    QCOMPARE(rates[21], 0.0);
    QVERIFY(contains(refused([&] { llm::LinearWarmupLR(sgd, 20, 20); }), "LinearWarmupLR"));
  }

  void gradients_are_clipped_to_the_norm() {
    auto [line, sgd] = SgdLine(0.0);
    llm::AMPOptimizer amp(line, sgd, GradScaler({.enabled = false}), 0.001);
    llm::GradientAccumulationOptimizer optimizer(amp, nullptr, 2);
    optimizer.backward(line.loss(3.0));
    optimizer.backward(line.loss(4.0));
    QVERIFY(std::abs(line.gradient()) > 1.0);
    QCOMPARE(optimizer.step(), StepOutcome::updated);
    QVERIFY(std::abs(line.gradient()) <= 0.001);
    QVERIFY(std::abs(line.gradient()) > 0.0009);
  }

  void the_number_of_micro_steps_follows_from_the_batches() {
    QCOMPARE(llm::gradient_accumulation_steps(8, 4, 2), std::int64_t{1});
    QCOMPARE(llm::gradient_accumulation_steps(16, 4, 2), std::int64_t{2});
    QCOMPARE(llm::gradient_accumulation_steps(32, 1, 1), std::int64_t{32});
    QVERIFY(contains(refused([] { llm::gradient_accumulation_steps(8, 3, 2); }), "multiple of 6"));
    QVERIFY(contains(refused([] { llm::gradient_accumulation_steps(8, 0, 2); }), "at least 1"));
  }

  void fewer_than_one_micro_step_is_refused() {
    auto [line, sgd] = SgdLine();
    auto decay = decay_of(sgd);
    for (const std::int64_t steps : {0, -3}) {
      const std::string number = " is " + std::to_string(steps) + ";";
      QVERIFY(contains(refused([&] { llm::GradientAccumulationOptimizer(sgd, nullptr, steps); }), number));
      QVERIFY(contains(refused([&] { llm::GradientAccumulationLRScheduler(decay, steps); }), number));
      QVERIFY(contains(refused([&] { llm::initialize(nullptr, sgd, decay, steps); }), number));
    }
    QVERIFY(contains(refused([&] { llm::initialize(nullptr, sgd, decay, 2, {Replay::drain_early}); }), "defects"));
  }

  void one_backward_too_many_ends_all_stepping() {
    auto [line, sgd] = SgdLine();
    llm::GradientAccumulationOptimizer optimizer(sgd, nullptr, 2);
    for (int i = 0; i < 3; ++i) optimizer.backward(line.loss(1.0));
    for (int i = 0; i < 20; ++i) {
      QCOMPARE(optimizer.step(), StepOutcome::accumulated);
      optimizer.backward(line.loss(1.0));
    }
    QCOMPARE(line.weight(), 0.0);
    llm::GradientAccumulationOptimizer resumed(sgd, nullptr, 2);
    resumed.load_state_dict(optimizer.state_dict());
    QCOMPARE(resumed.step(), StepOutcome::accumulated);
    QVERIFY(!resumed.accumulation_boundary());
  }

  void gradients_are_cleared_between_windows_only() {
    auto [line, sgd] = SgdLine();
    llm::GradientAccumulationOptimizer optimizer(sgd, nullptr, 2);
    optimizer.backward(line.loss(1.0));
    optimizer.zero_grad();
    QCOMPARE(line.gradient(), -2.0);
    optimizer.backward(line.loss(1.0));
    optimizer.zero_grad();  // between the last backward and the step: nothing either
    QCOMPARE(line.gradient(), -4.0);
    optimizer.step();
    QCOMPARE(line.gradient(), -4.0);
    optimizer.zero_grad(/*set_to_none=*/false);
    QCOMPARE(line.w.grad().item<double>(), 0.0);
    optimizer.zero_grad();
    QVERIFY(!line.w.grad().defined());
  }

  void the_window_is_closed_before_the_inner_step_runs() {
    auto [line, sgd] = SgdLine();
    NotedSync sync;
    Watching watching(sgd, sync);
    watching.fails = true;
    llm::GradientAccumulationOptimizer optimizer(watching, nullptr, 2);
    optimizer.backward(line.loss(1.0));
    optimizer.backward(line.loss(1.0));
    QVERIFY_THROWS_EXCEPTION(std::runtime_error, optimizer.step());
    QVERIFY(optimizer.accumulation_boundary());
  }

  void the_scheduler_counts_its_own_calls() {
    auto [line, sgd] = SgdLine(1.0);
    auto decay = decay_of(sgd, 0.5);
    llm::GradientAccumulationLRScheduler alone(decay, 3);
    for (int call = 1; call <= 9; ++call) {
      alone.step();
      QCOMPARE(decay.position(), std::int64_t{call / 3});
    }
    Line other;
    auto second = sgd_over(other);
    auto shared_decay = decay_of(second);
    auto [optimizer, scheduler] = llm::initialize(nullptr, second, shared_decay, 4);
    for (int m = 1; m <= 8; ++m) {  // twice a micro-step: the schedule moves at every 4th call all the same
      optimizer->backward(other.loss(1.0));
      optimizer->step();
      scheduler->step();
      scheduler->step();
      QCOMPARE(shared_decay.position(), std::int64_t{2 * m / 4});
    }
    QCOMPARE(optimizer->window().updates_done(), std::int64_t{2});
  }

  void both_wrappers_read_one_window() {
    auto [line, sgd] = SgdLine();
    auto decay = decay_of(sgd);
    auto [optimizer, scheduler] = llm::initialize(nullptr, sgd, decay);
    QCOMPARE(&optimizer->window(), &scheduler->window());
    QCOMPARE(optimizer->window().shape().steps, std::int64_t{1});
    optimizer->backward(line.loss(1.0));
    QCOMPARE(optimizer->step(), StepOutcome::updated);
  }

  /// A resume of the original inside a group: the scheduler's count was saved, the optimizer's was not.
  void made_one_by_one_they_drift_apart_as_the_originals_do() {
    auto [line, sgd] = SgdLine();
    auto decay = decay_of(sgd);
    llm::GradientAccumulationLRScheduler before(decay, 4);
    before.step();
    before.step();
    llm::GradientAccumulationOptimizer optimizer(sgd, nullptr, 4);
    llm::GradientAccumulationLRScheduler scheduler(decay, 4);
    scheduler.load_state_dict(before.state_dict());
    std::vector<int> stepped;
    std::vector<int> moved;
    for (int m = 1; m <= 8; ++m) {
      optimizer.backward(line.loss(1.0));
      if (optimizer.step() == StepOutcome::updated) stepped.push_back(m);
      const std::int64_t position = decay.position();
      scheduler.step();
      if (decay.position() > position) moved.push_back(m);
    }
    QCOMPARE(stepped, (std::vector<int>{4, 8}));
    QCOMPARE(moved, (std::vector<int>{2, 6}));
  }

  void gradients_are_reduced_once_a_window_data() {
    QTest::addColumn<bool>("mixed");
    QTest::newRow("plain") << false;
    QTest::newRow("under mixed precision") << true;
  }
  void gradients_are_reduced_once_a_window() {
    QFETCH(bool, mixed);
    auto [line, sgd] = SgdLine();
    NotedSync sync;
    Watching watching(sgd, sync);
    llm::AMPOptimizer amp(line, watching, GradScaler({.init_scale = 8.0}));
    llm::GradientAccumulationOptimizer optimizer(mixed ? static_cast<BaseOptimizer&>(amp) : watching, &sync, 4);
    for (const int b : ten_batches()) {
      optimizer.zero_grad();
      optimizer.backward(line.loss(b));
      optimizer.step();
    }
    QCOMPARE(sync.finished_after, (std::vector<int>{4, 8}));
    for (std::size_t i = 0; i < 10; ++i) QCOMPARE(sync.enabled_in_backward[i], i == 3 || i == 7);
    QVERIFY(sync.enabled);
    ACCRUE_NEAR(line.weight(), 0.95475);
  }

  void the_originals_no_sync_reduces_in_every_micro_step_where_asked_for() {
    auto [line, sgd] = SgdLine();
    NotedSync sync;
    Watching watching(sgd, sync);
    llm::GradientAccumulationOptimizer optimizer(watching, &sync, 4, {Replay::narrow_no_sync});
    for (int m = 0; m < 6; ++m) optimizer.backward(line.loss(1.0));
    QCOMPARE(sync.finished_after, (std::vector<int>{1, 2, 3, 4, 5, 6}));
  }

  void a_resume_keeps_the_place_in_the_window_data() {
    QTest::addColumn<bool>("one_window");
    QTest::addColumn<int>("micro_steps");
    QTest::addColumn<bool>("before_step");
    for (int m = 0; m <= 9; ++m) {
      QTest::addRow("after %d", m) << true << m << false;
      if (m > 0) QTest::addRow("after %d, step to come", m) << true << m << true;
      if (m < 5) QTest::addRow("after %d, made one by one", m) << false << m << false;
    }
  }
  void a_resume_keeps_the_place_in_the_window() {
    QFETCH(bool, one_window);
    QFETCH(int, micro_steps);
    QFETCH(bool, before_step);
    struct Run {
      explicit Run(bool together) : adam({line.w}, torch::optim::AdamOptions(0.1)), decay(decay_of(adam)) {
        if (together) {
          std::tie(optimizer, scheduler) = llm::initialize(nullptr, adam, decay, 4);
        } else {
          optimizer = std::make_shared<llm::GradientAccumulationOptimizer>(adam, nullptr, 4);
          scheduler = std::make_shared<llm::GradientAccumulationLRScheduler>(decay, 4);
        }
      }
      void begin(int m) {
        optimizer->zero_grad();
        optimizer->backward(line.loss(m % 10 + 1));
      }
      void end() {
        optimizer->step();
        scheduler->step();
      }
      Line line;
      torch::optim::Adam adam;
      LambdaLR decay;
      std::shared_ptr<llm::GradientAccumulationOptimizer> optimizer;
      std::shared_ptr<llm::GradientAccumulationLRScheduler> scheduler;
    };
    Run whole(one_window), first(one_window), second(one_window);
    for (int m = 0; m < 20; ++m) {
      whole.begin(m);
      whole.end();
    }
    for (int m = 0; m < micro_steps; ++m) {
      first.begin(m);
      if (m + 1 < micro_steps || !before_step) first.end();
    }
    const StateDict rates = first.scheduler->state_dict(), moments = first.optimizer->state_dict();
    {
      const at::NoGradGuard no_grad;
      second.line.w.copy_(first.line.w);
    }
    if (first.line.w.grad().defined()) second.line.w.mutable_grad() = first.line.w.grad().clone();
    second.scheduler->load_state_dict(rates);
    second.optimizer->load_state_dict(moments);
    if (before_step) second.end();
    for (int m = micro_steps; m < 20; ++m) {
      second.begin(m);
      second.end();
    }
    QCOMPARE(second.line.weight(), whole.line.weight());
    QCOMPARE(second.decay.position(), whole.decay.position());
    QVERIFY(second.optimizer->window().position() == whole.optimizer->window().position());
  }

  void the_two_states_do_not_touch_each_others_half() {
    auto [line, sgd] = SgdLine();
    auto decay = decay_of(sgd);
    auto [optimizer, scheduler] = llm::initialize(nullptr, sgd, decay, 4);
    optimizer->backward(line.loss(1.0));
    scheduler->step();
    const StateDict early = optimizer->state_dict(), early_rates = scheduler->state_dict();
    for (int i = 0; i < 2; ++i) {
      optimizer->backward(line.loss(1.0));
      scheduler->step();
    }
    optimizer->load_state_dict(early);  // one backward counted, three calls of the scheduler
    QCOMPARE(optimizer->window().position().counter(), std::int64_t{1});
    scheduler->step();
    QCOMPARE(decay.position(), std::int64_t{1});
    optimizer->backward(line.loss(1.0));
    scheduler->load_state_dict(early_rates);  // two backwards counted, one call
    QCOMPARE(optimizer->window().position().counter(), std::int64_t{2});
    for (int i = 0; i < 3; ++i) {
      QCOMPARE(decay.position(), std::int64_t{0});
      scheduler->step();
    }
    QCOMPARE(decay.position(), std::int64_t{1});
  }

  void a_state_of_something_else_is_refused_and_changes_nothing() {
    auto [line, sgd] = SgdLine();
    auto decay = decay_of(sgd);
    auto [optimizer, scheduler] = llm::initialize(nullptr, sgd, decay, 4);
    optimizer->backward(line.loss(1.0));
    const WindowPosition before = optimizer->window().position();
    StateDict partial = optimizer->state_dict();
    partial.erase("window.counter");
    QVERIFY(contains(refused([&] { optimizer->load_state_dict(partial); }), "counter"));
    QVERIFY(optimizer->window().position() == before);
  }

  void the_originals_resume_freezes_the_rate_where_asked_for() {
    auto [line, sgd] = SgdLine(0.1);
    auto decay = decay_of(sgd);
    llm::GradientAccumulationLRScheduler scheduler(decay, 1);
    scheduler.step();
    scheduler.step();
    ACCRUE_NEAR(learning_rates(sgd).at(0), 0.081);
    const StateDict saved = scheduler.state_dict(), optimizer_state = wrap(sgd)->state_dict();

    auto live = sgd_over(line, 0.1);
    auto again = decay_of(live);
    llm::GradientAccumulationLRScheduler frozen(again, 1, &live);
    wrap(live)->load_state_dict(optimizer_state);
    frozen.load_state_dict(saved);
    for (const double expected : {0.0729, 0.06561, 0.059049}) {
      frozen.step();
      ACCRUE_NEAR(frozen.get_last_lr().at(0), expected);
      ACCRUE_NEAR(learning_rates(live).at(0), 0.081);
    }
    llm::GradientAccumulationLRScheduler sound(again, 1);
    sound.load_state_dict(saved);
    sound.step();
    ACCRUE_NEAR(learning_rates(live).at(0), 0.0729);
  }

  void initialize_hands_the_freezing_replay_to_the_scheduler() {
    auto [line, sgd] = SgdLine(0.1);
    auto decay = decay_of(sgd);
    auto [optimizer, scheduler] = llm::initialize(nullptr, sgd, decay, 1, {Replay::scheduler_state});
    scheduler->load_state_dict(scheduler->state_dict());
    scheduler->step();
    ACCRUE_NEAR(scheduler->get_last_lr().at(0), 0.09);
    ACCRUE_NEAR(learning_rates(sgd).at(0), 0.1);
  }

  void an_overflow_anywhere_in_a_window_skips_that_window_alone_data() {
    QTest::addColumn<int>("position");
    for (int position = 0; position < 4; ++position) QTest::addRow("micro-step %d", position + 1) << position;
  }
  void an_overflow_anywhere_in_a_window_skips_that_window_alone() {
    QFETCH(int, position);
    Line line;
    torch::optim::Adam adam({line.w}, torch::optim::AdamOptions(0.1));
    auto decay = decay_of(adam);
    const auto amp = std::make_shared<llm::AMPOptimizer>(line, adam, GradScaler({.init_scale = 1024.0}));
    auto [optimizer, scheduler] = llm::initialize(nullptr, amp, decay, 4);
    const auto moment = [&] {
      return static_cast<torch::optim::AdamParamState&>(*adam.state().at(line.w.unsafeGetTensorImpl()))
          .exp_avg()
          .item<double>();
    };
    std::vector<StepOutcome> outcomes;
    std::vector<double> weights{line.weight()}, moments{0.0};
    for (int m = 0; m < 12; ++m) {
      optimizer->zero_grad();
      const at::Tensor loss = line.loss(m % 4 + 1);
      optimizer->backward(m == 4 + position ? loss * infinity : loss);
      const StepOutcome outcome = optimizer->step();
      scheduler->step();
      if (m % 4 != 3) {
        QCOMPARE(outcome, StepOutcome::accumulated);
        continue;
      }
      outcomes.push_back(outcome);
      weights.push_back(line.weight());
      moments.push_back(moment());
      QCOMPARE(decay.position(), std::int64_t{m / 4 + 1});  // the schedule continues
    }
    QCOMPARE(outcomes,
             (std::vector<StepOutcome>{StepOutcome::updated, StepOutcome::skipped_overflow, StepOutcome::updated}));
    QVERIFY(weights[1] != weights[0]);
    QCOMPARE(weights[2], weights[1]);
    QCOMPARE(moments[2], moments[1]);
    QVERIFY(weights[3] != weights[2]);
    QCOMPARE(amp->scaler().get_scale(), 512.0);
  }

  void clipping_sees_the_unscaled_sum_once_a_window() {
    auto [line, sgd] = SgdLine(1.0);
    llm::AMPOptimizer amp(line, sgd, GradScaler({.init_scale = 1024.0}), 1.0);
    llm::GradientAccumulationOptimizer optimizer(amp, nullptr, 2);
    optimizer.backward(line.loss(1.0));
    optimizer.step();
    ACCRUE_NEAR(line.gradient(), -2.0 * 1024.0);
    optimizer.backward(line.loss(2.0));
    optimizer.step();
    ACCRUE_NEAR(line.weight(), 10.0 / (10.0 + 1e-6));  // -(4 + 16) / 2, clipped to a norm of 1
    optimizer.zero_grad();
    optimizer.backward(line.loss(1.0));
    optimizer.backward(line.loss(1.0));
    QCOMPARE(optimizer.step(), StepOutcome::updated);
  }

  void mixed_precision_keeps_the_scale_in_its_state() {
    auto [line, sgd] = SgdLine();
    llm::AMPOptimizer amp(line, sgd, GradScaler({.init_scale = 1024.0}));
    amp.backward(line.loss(1.0) * infinity);
    amp.step();
    const StateDict state = amp.state_dict();
    QCOMPARE(real_of(state, "grad_scaler.scale"), 512.0);
    llm::AMPOptimizer other(line, sgd, GradScaler({.init_scale = 1024.0}));
    other.load_state_dict(state);
    QCOMPARE(other.scaler().get_scale(), 512.0);
    QVERIFY(contains(refused([&] { other.load_state_dict(wrap(sgd)->state_dict()); }), "scale"));
  }

  void the_higher_entry_wraps_only_what_is_asked_for() {
    auto [line, sgd] = SgdLine();
    auto decay = decay_of(sgd);
    const auto inner = wrap(sgd);
    auto [same, schedule] = llm::initialize(line, nullptr, inner, decay, 1, {.max_norm = 0.001});
    QCOMPARE(same.get(), inner.get());  // no dtype: max_norm is ignored too
    QCOMPARE(schedule.get(), static_cast<BaseScheduler*>(&decay));
    QVERIFY(llm::accumulation_boundary(*same));
    auto [mixed, unwrapped] = llm::initialize(line, nullptr, inner, decay, 1, {.dtype = at::kBFloat16});
    const auto* amp = dynamic_cast<llm::AMPOptimizer*>(mixed.get());
    QVERIFY(amp != nullptr);
    QVERIFY(!amp->scaler().enabled());  // on a CPU
    auto [both, counting] =
        llm::initialize(line, nullptr, inner, decay, 4, {.dtype = at::kHalf, .scaler = GradScalerOptions{}});
    auto* accumulating = dynamic_cast<llm::GradientAccumulationOptimizer*>(both.get());
    QVERIFY(accumulating != nullptr);
    amp = dynamic_cast<llm::AMPOptimizer*>(&accumulating->inner());
    QVERIFY(amp != nullptr && amp->scaler().enabled());
    QVERIFY(dynamic_cast<llm::GradientAccumulationLRScheduler*>(counting.get()) != nullptr);
    QVERIFY(!refused([&] { llm::initialize(line, nullptr, inner, decay, 0, {}); }).empty());
  }

  void forwards_compute_in_the_narrow_type_within_the_scope() {
    const at::Tensor x = at::ones({2, 3}), weight = at::ones({4, 3});
    {
      const llm::AutocastScope outer(at::kBFloat16);
      QCOMPARE(at::linear(x, weight).scalar_type(), at::kBFloat16);
      {
        const llm::AutocastScope nested(at::kHalf);
        QCOMPARE(at::linear(x, weight).scalar_type(), at::kHalf);
      }
      QCOMPARE(at::linear(x, weight).scalar_type(), at::kBFloat16);
    }
    QCOMPARE(at::linear(x, weight).scalar_type(), at::kFloat);
  }

  void a_state_from_a_longer_window_is_taken_only_where_it_can_end_data() {
    QTest::addColumn<int>("done");
    QTest::addColumn<bool>("taken");
    QTest::newRow("a group's start") << 0 << true;
    QTest::newRow("below the new length") << 1 << true;
    QTest::newRow("at the new length") << 2 << false;
    QTest::newRow("beyond it") << 3 << false;
    QTest::newRow("the step is due") << 4 << true;
  }
  void a_state_from_a_longer_window_is_taken_only_where_it_can_end() {
    QFETCH(int, done);
    QFETCH(bool, taken);
    auto [line, sgd] = SgdLine();
    llm::GradientAccumulationOptimizer longer(sgd, nullptr, 4), shorter(sgd, nullptr, 2), same(sgd, nullptr, 4);
    for (int i = 0; i < done; ++i) longer.backward(line.loss(1.0));
    const StateDict state = longer.state_dict();
    const std::string answer = refused([&] { shorter.load_state_dict(state); });
    QCOMPARE(answer.empty(), taken);
    if (!taken) QVERIFY2(contains(answer, "make the wrapper with 4"), answer.c_str());
    same.load_state_dict(state);
    QCOMPARE(same.window().open_micro_steps(), std::int64_t{done});
    bool updated = false;
    for (int i = 0; i < 2 && taken && !updated; ++i) {
      if (done < 4) shorter.backward(line.loss(1.0));
      updated = shorter.step() == StepOutcome::updated;
    }
    QCOMPARE(updated, taken);
  }

  void a_backward_that_has_to_reduce_is_refused_under_no_sync() {
    auto [line, sgd] = SgdLine();
    NotedSync sync;
    llm::GradientAccumulationOptimizer optimizer(sgd, &sync, 2);
    auto quiet = std::make_unique<GradSync::NoSyncScope>(sync);
    optimizer.backward(line.loss(1.0));
    QVERIFY(thrown_by<std::logic_error>([&] { optimizer.backward(line.loss(1.0)); }).contains(u"no_sync scope"));
    QCOMPARE(optimizer.step(), StepOutcome::accumulated);
    quiet.reset();
    optimizer.backward(line.loss(1.0));  // nothing was counted
    QCOMPARE(sync.finished_after.size(), std::size_t{1});
    QCOMPARE(optimizer.step(), StepOutcome::updated);
  }
};

ACCRUE_TEST_MAIN(TestLlmAccumulation)

}  // namespace test_llm_accumulation
#include "test_llm_accumulation.moc"
