// SPDX-License-Identifier: Apache-2.0
// OptimWrapper and its kin in one process: the numbers of MMEngine's own counting rules, what it does at the end of a
// run and after a resume, and that scaling, clipping and schedules happen where they belong.
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <QTest>
#include <cmath>
#include <limits>

#include "accrue/accumulation/base_scheduler.h"
#include "accrue/accumulation/mmengine/amp_optim_wrapper.h"
#include "accrue/accumulation/mmengine/colossalai_optim_wrapper.h"
#include "accrue/accumulation/mmengine/param_scheduler_hook.h"
#include "support/ten_batches.h"

using namespace accrue;
using namespace accrue::mmengine;
using namespace accrue::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool near(double value, double expected) {
  if (std::abs(value - expected) <= 1e-12) return true;
  qWarning("%.17g is not %.17g", value, expected);
  return false;
}

double scaled_one(const OptimWrapper& wrapper) {
  return wrapper.scale_loss(at::ones({}, at::kDouble)).item<double>();
}

template <typename Thrown, typename Call>
QString thrown_by(Call&& call) {
  try {
    call();
  } catch (const Thrown& error) {
    return QString::fromUtf8(error.what());
  }
  return {};
}

/// One weight under SGD in a wrapper that counts its warnings.
struct Run {
  explicit Run(std::int64_t counts, GradSync* sync = nullptr)
      : optimizer(line.parameters(), torch::optim::SGDOptions(ten_batches_lr)),
        wrapper(optimizer, {.accumulative_counts = counts, .sync = sync, .warn = [this](const std::string& text) {
                              warnings.append(QString::fromStdString(text));
                            }}) {}
  void init(std::int64_t count, std::int64_t most) { wrapper.initialize_count_status(line, count, most); }
  StepOutcome train(std::int64_t m) {
    return train_step(wrapper, line, [&] { return line.loss(batch_of(m)); }).outcome;
  }
  /// Micro-steps from first to last; those that updated.
  QList<std::int64_t> train(std::int64_t first, std::int64_t last) {
    QList<std::int64_t> updates;
    for (std::int64_t m = first; m <= last; ++m)
      if (train(m) == StepOutcome::updated) updates.append(m);
    return updates;
  }
  Line line;
  QStringList warnings;
  torch::optim::SGD optimizer;
  OptimWrapper wrapper;
};

/// A reducer that only counts.
struct CountedSync final : GradSync {
  bool sync_enabled() const override { return enabled; }
  void set_sync_enabled(bool value) override { enabled = value; }
  void finish() override { reductions += enabled ? 1 : 0; }
  bool enabled = true;
  int reductions = 0;
};

/// Writes down what it is asked: "(" and ")" around no_sync, "f" for a forward, "b" for a backward, "r" where it
/// reduces.
struct ScribeBooster final : Booster {
  explicit ScribeBooster(Plugin described) : described_(std::move(described)) {}
  const Plugin& plugin() const override { return described_; }
  std::shared_ptr<void> no_sync(torch::nn::Module* module, BaseOptimizer&) override {
    model = module;
    letters += '(';
    ++open_;
    return std::shared_ptr<void>(nullptr, [this](void*) {
      letters += ')';
      --open_;
    });
  }
  void backward(const at::Tensor& loss, BaseOptimizer& optimizer) override {
    letters += open_ > 0 ? "b" : "br";
    optimizer.backward(loss);
  }
  void reduce(BaseOptimizer&) override { letters += 'r'; }
  QString letters;
  torch::nn::Module* model = nullptr;

 private:
  Plugin described_;
  int open_ = 0;
};

/// BatchNorm two modules down.
struct Deep : torch::nn::Module {
  Deep() {
    const auto block = std::make_shared<torch::nn::Module>();
    block->register_module("norm", torch::nn::BatchNorm1d(2));
    register_module("block", block);
  }
};

QString letters_of(Plugin plugin, std::int64_t counts, std::int64_t micro_steps, std::vector<Replay> replay = {}) {
  Line line;
  torch::optim::SGD sgd(line.parameters(), torch::optim::SGDOptions(0.005));
  const auto scribe = std::make_shared<ScribeBooster>(std::move(plugin));
  ColossalAIOptimWrapper wrapper(sgd, scribe, counts, {}, std::move(replay));
  wrapper.initialize_count_status(line, 0, micro_steps);
  for (std::int64_t m = 1; m <= micro_steps; ++m)
    train_step(wrapper, line, [&] {
      scribe->letters += 'f';
      return line.loss(batch_of(m));
    });
  if (scribe->model != nullptr && scribe->model != &line) return "another model";
  return scribe->letters;
}

/// Nine micro-steps in groups of three; an infinity in one of them, and one group left out altogether.
struct ScaledRun {
  explicit ScaledRun(at::ScalarType type) {
    weight = at::full({3}, 0.5, type).requires_grad_();
    adam = std::make_unique<torch::optim::Adam>(std::vector<at::Tensor>{weight}, torch::optim::AdamOptions(0.125));
    wrapper = std::make_unique<AmpOptimWrapper>(*adam, AmpOptions{.loss_scale = {.init_scale = 1024.0}},
                                                OptimWrapperOptions{.accumulative_counts = 3});
  }
  QString train(std::int64_t infinite, std::int64_t left_out = -1) {
    QString outcomes;
    for (std::int64_t m = 0; m < 9; ++m) {
      if (m / 3 == left_out) continue;
      const double slope = m == infinite ? infinity : 0.25 + 0.125 * static_cast<double>(m);
      const StepOutcome outcome = wrapper->update_params((weight * slope).sum());
      if (outcome != StepOutcome::accumulated) outcomes += outcome == StepOutcome::updated ? "u" : "s";
    }
    return outcomes;
  }
  const torch::optim::AdamParamState& moments() const {
    return static_cast<const torch::optim::AdamParamState&>(*adam->state().at(weight.unsafeGetTensorImpl()));
  }
  at::Tensor weight;
  std::unique_ptr<torch::optim::Adam> adam;
  std::unique_ptr<AmpOptimWrapper> wrapper;
};

class TestMmengineAccumulation : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // --- counting -----------------------------------------------------------------------------------------------------

  void updates_at_the_third_of_three_and_divides_by_three() {
    Run run(3);
    for (const bool updates : {false, false, true}) {
      QVERIFY(near(scaled_one(run.wrapper), 1.0 / 3.0));
      QCOMPARE(run.wrapper.should_sync(), updates);
      const StepOutcome outcome = run.wrapper.update_params(run.line.w.sum() * 0.0 + 1.0);
      QCOMPARE(outcome, updates ? StepOutcome::updated : StepOutcome::accumulated);
      QCOMPARE(run.wrapper.should_update(), updates);
    }
    QCOMPARE(run.wrapper.inner_count(), 3);
  }

  void does_not_know_the_last_group_of_an_open_run() {
    Run run(3);
    run.init(99, unset_counts);
    QVERIFY(near(scaled_one(run.wrapper), 1.0 / 3.0));
    QCOMPARE(run.train(100), StepOutcome::accumulated);
    QCOMPARE(run.wrapper.inner_count(), 100);
    QCOMPARE(run.wrapper.remainder_counts(), unset_counts);
  }

  void a_last_group_of_one_updates_at_once_with_its_whole_loss() {
    Run run(3);
    run.init(99, 100);
    QCOMPARE(run.wrapper.remainder_counts(), 1);
    QVERIFY(run.wrapper.should_sync());
    QCOMPARE(scaled_one(run.wrapper), 1.0);
    QCOMPARE(run.train(100), StepOutcome::updated);
    QVERIFY(run.warnings.isEmpty());
  }

  void a_whole_group_before_the_last_is_divided_by_three() {
    Run run(3);
    run.init(96, 100);
    for (int call = 0; call < 2; ++call) {
      QVERIFY(near(scaled_one(run.wrapper), 1.0 / 3.0));
      QCOMPARE(run.train(1), StepOutcome::accumulated);
    }
  }

  void the_remainder_is_that_of_the_whole_run() {
    Run run(3);
    run.init(0, 100);
    QCOMPARE(run.wrapper.remainder_counts(), 1);
    QCOMPARE(run.wrapper.max_counts(), 100);
    QVERIFY(run.warnings.isEmpty());
  }

  void a_resume_inside_a_group_warns_once_of_lost_gradients() {
    Run run(3);
    run.init(2, 100);
    QCOMPARE(run.warnings.size(), 1);
    QVERIFY2(run.warnings.first().contains("lost"), qPrintable(run.warnings.first()));
  }

  void batch_norm_warns_once_and_only_where_groups_are_longer_than_one() {
    const Deep deep;
    Run run(3);
    run.wrapper.initialize_count_status(deep, 0, 99);
    QCOMPARE(run.warnings.size(), 1);
    QVERIFY2(run.warnings.first().contains("BatchNorm"), qPrintable(run.warnings.first()));
    torch::nn::BatchNorm2d itself(2);
    run.wrapper.initialize_count_status(*itself, 0, 99);
    QCOMPARE(run.warnings.size(), 2);
    Run alone(1);
    alone.wrapper.initialize_count_status(deep, 0, 99);
    QVERIFY(alone.warnings.isEmpty());
  }

  void gradients_are_gone_after_the_third_train_step() {
    Run run(3);
    run.init(0, 100);
    run.train(1, 2);
    QVERIFY(run.line.w.grad().defined());
    run.train(3);
    QVERIFY(!run.line.w.grad().defined());
  }

  void direct_calls_are_neither_gated_nor_scaled() {
    Run run(4);
    run.wrapper.backward(run.line.loss(1.0));
    QCOMPARE(run.line.w.grad().item<double>(), -4.0);
    QCOMPARE(run.wrapper.inner_count(), 1);
    QCOMPARE(run.wrapper.step(), StepOutcome::updated);
    QVERIFY(near(run.line.weight(), 0.02));
    run.wrapper.zero_grad();
    QVERIFY(!run.line.w.grad().defined());
  }

  void a_failing_backward_is_not_counted() {
    Run run(3);
    QVERIFY(!thrown_by<c10::Error>([&] { run.wrapper.backward(at::ones({}, at::kDouble)); }).isEmpty());
    QCOMPARE(run.wrapper.inner_count(), 0);
  }

  void counts_below_one_are_refused() {
    Line line;
    torch::optim::SGD sgd(line.parameters(), torch::optim::SGDOptions(0.1));
    for (const std::int64_t counts : {0, -2})
      QVERIFY(thrown_by<std::invalid_argument>([&] {
                OptimWrapper(sgd, {.accumulative_counts = counts});
              }).contains("accumulative_counts"));
    Run run(2);
    QVERIFY(!thrown_by<std::invalid_argument>([&] { run.init(-1, 10); }).isEmpty());
  }

  // --- the ten-batch case -------------------------------------------------------------------------------------------

  void one_epoch_flushes_the_short_group_by_its_own_size() {
    Run run(4);
    run.init(0, 10);
    QCOMPARE(run.train(1, 10), (QList<std::int64_t>{4, 8, 10}));
    QVERIFY(near(run.line.weight(), 1.90070125));
    QVERIFY(!run.line.w.grad().defined());
  }

  void two_epochs_are_five_groups_that_run_across() {
    Run run(4);
    run.init(0, 20);
    QCOMPARE(run.train(1, 20), (QList<std::int64_t>{4, 8, 12, 16, 20}));
    QVERIFY(near(run.line.weight(), weight_after({0.925, 0.565, 0.535, 0.785, 0.265})));
    QVERIFY(!run.line.w.grad().defined());
  }

  void three_epochs_flush_the_last_two_batches_of_the_run() {
    Run run(4);
    run.init(0, 30);
    QCOMPARE(run.train(1, 30), (QList<std::int64_t>{4, 8, 12, 16, 20, 24, 28, 30}));
    QVERIFY(near(run.line.weight(), weight_after({0.925, 0.565, 0.535, 0.785, 0.265, 0.925, 0.565, 0.095})));
    QVERIFY(!run.line.w.grad().defined());
  }

  void divisors_and_reductions_are_those_of_each_micro_step() {
    for (const std::int64_t most : {10, 20}) {
      Run run(4);
      run.init(0, most);
      QList<double> divisors;
      QList<std::int64_t> reductions;
      for (std::int64_t m = 1; m <= most; ++m) {
        divisors.append(1.0 / scaled_one(run.wrapper));
        if (run.wrapper.should_sync()) reductions.append(m);
        run.train(m);
      }
      QList<double> expected(most, 4.0);
      if (most == 10) expected[8] = expected[9] = 2.0;
      QCOMPARE(divisors, expected);
      QCOMPARE(reductions, most == 10 ? (QList<std::int64_t>{4, 8, 10}) : (QList<std::int64_t>{4, 8, 12, 16, 20}));
    }
  }

  void lengths_that_groups_fill_or_do_not_reach_have_their_rule() {
    struct Case {
      std::int64_t counts, most;
      QList<std::int64_t> updates;
      double last_divisor;
    };
    const QList<Case> cases{{5, 10, {5, 10}, 5.0},
                            {12, 10, {10}, 10.0},
                            {10, 10, {10}, 10.0},
                            {7, 10, {7, 10}, 3.0},
                            {1, 3, {1, 2, 3}, 1.0}};
    for (const Case& each : cases) {
      Run run(each.counts);
      run.init(0, each.most);
      QList<std::int64_t> updates = run.train(1, each.most - 1);
      QVERIFY(near(1.0 / scaled_one(run.wrapper), each.last_divisor));
      updates += run.train(each.most, each.most);
      QCOMPARE(updates, each.updates);
    }
  }

  // --- beyond the end, and after a resume ---------------------------------------------------------------------------

  void beyond_a_run_of_whole_groups_it_says_what_to_do() {
    Run run(5);
    run.init(0, 10);
    run.train(1, 10);
    const QString text = thrown_by<std::logic_error>([&] { run.train(11); });
    QVERIFY2(text.contains("initialize_count_status") && text.contains("11"), qPrintable(text));
    QCOMPARE(run.wrapper.inner_count(), 10);
    run.init(10, 12);
    QCOMPARE(run.train(11, 12), (QList<std::int64_t>{12}));
  }

  void beyond_a_run_with_a_remainder_it_goes_on_at_multiples_of_n() {
    Run run(3);
    run.init(0, 10);
    QCOMPARE(run.train(1, 10), (QList<std::int64_t>{3, 6, 9, 10}));
    for (std::int64_t m = 11; m <= 15; ++m) {
      QCOMPARE(scaled_one(run.wrapper), 1.0);
      QCOMPARE(run.train(m), m % 3 == 0 ? StepOutcome::updated : StepOutcome::accumulated);
    }
  }

  void a_resumed_group_keeps_its_phase_and_its_divisor() {
    Run run(3);
    run.init(2, 9);
    QVERIFY(run.wrapper.should_sync());
    QCOMPARE(run.train(3), StepOutcome::updated);  // one micro-step, divided by three
    QVERIFY(near(run.line.weight(), weight_after({1.0 - ten_batches_lr * 2.0 * 9.0 / 3.0})));
    QCOMPARE(run.train(4, 9), (QList<std::int64_t>{6, 9}));
  }

  void a_resumed_run_still_flushes_its_last_group() {
    Run run(4);
    const ColossalAIStrategy strategy({.accumulative_counts = 4, .max_iters = 10});
    strategy.prepare(run.line, run.wrapper);
    run.train(1, 4);
    strategy.resume(run.line, run.wrapper, 4);
    QCOMPARE(run.train(5, 10), (QList<std::int64_t>{8, 10}));
    QVERIFY(near(run.line.weight(), 1.90070125));
  }

  void the_replayed_restart_of_the_count_loses_the_last_group() {
    Run run(4);
    const ColossalAIStrategy strategy({.accumulative_counts = 4, .max_iters = 10, .replay = {Replay::restart_count}});
    strategy.prepare(run.line, run.wrapper);
    run.train(1, 4);
    strategy.resume(run.line, run.wrapper, 4);
    QCOMPARE(run.wrapper.inner_count(), 0);
    QCOMPARE(run.train(5, 10), (QList<std::int64_t>{8}));
    QVERIFY(near(run.line.weight(), 0.95475));
    QVERIFY(near(run.line.w.grad().item<double>(), -94.595125));
  }

  // --- schedules ----------------------------------------------------------------------------------------------------

  void schedules_by_iteration_move_inside_a_group_and_by_epoch_at_its_end() {
    Run run(4);
    run.init(0, 10);
    torch::optim::SGD other({at::zeros({1}).requires_grad_()}, torch::optim::SGDOptions(1.0));
    const auto by_iteration =
        std::make_shared<LambdaLR>(run.optimizer, [](std::int64_t p) { return static_cast<double>(p + 1); });
    const auto by_epoch = std::make_shared<LambdaLR>(other, [](std::int64_t p) { return static_cast<double>(p); });
    ParamSchedulerHook hook(run.wrapper.window());
    hook.add(by_iteration, false);
    hook.add(by_epoch, true);
    QList<std::int64_t> rate_of_update;
    for (std::int64_t m = 1; m <= 10; ++m) {
      const double rate = run.wrapper.get_lr().at("lr").at(0) / ten_batches_lr;
      if (run.train(m) == StepOutcome::updated) rate_of_update.append(std::llround(rate) - 1);
      hook.after_train_iter();
      QCOMPARE(hook.iteration_position(), m);
      QCOMPARE(by_iteration->position(), m);
      QCOMPARE(by_epoch->position(), 0);
    }
    hook.after_train_epoch();
    QCOMPARE(by_epoch->position(), 1);
    QCOMPARE(hook.epoch_position(), 1);
    QCOMPARE(hook.iteration_position(), 10);
    QCOMPARE(rate_of_update, (QList<std::int64_t>{3, 7, 9}));
  }

  // --- clipping -----------------------------------------------------------------------------------------------------

  void clips_the_groups_sum_once_inside_the_step() {
    at::Tensor weight = at::zeros({2}, at::kDouble).requires_grad_();
    torch::optim::SGD sgd({weight}, torch::optim::SGDOptions(1.0));
    OptimWrapper wrapper(sgd, {.accumulative_counts = 2, .clip_grad = ClipGrad{.max_norm = 1.0}});
    const at::Tensor slope = at::tensor({6.0, 8.0}, at::kDouble);
    wrapper.update_params((weight * slope).sum());
    QVERIFY(at::equal(weight.grad(), slope / 2.0));
    QVERIFY(!wrapper.grad_norm());
    wrapper.update_params((weight * slope).sum());
    QCOMPARE(wrapper.grad_norm().value(), 10.0);
    QVERIFY(near(weight.detach().norm().item<double>(), 10.0 / (10.0 + 1e-6)));
  }

  void leaves_gradients_below_the_bound_alone() {
    at::Tensor weight = at::zeros({2}, at::kDouble).requires_grad_();
    torch::optim::SGD sgd({weight}, torch::optim::SGDOptions(1.0));
    OptimWrapper wrapper(sgd, {.clip_grad = ClipGrad{.max_norm = 7.0, .norm_type = infinity}});
    wrapper.update_params((weight * at::tensor({3.0, -4.0}, at::kDouble)).sum());
    QCOMPARE(wrapper.grad_norm().value(), 4.0);
    QVERIFY(at::equal(weight.detach(), at::tensor({-3.0, 4.0}, at::kDouble)));
  }

  void clips_by_value_without_a_norm() {
    at::Tensor weight = at::zeros({2}, at::kDouble).requires_grad_();
    torch::optim::SGD sgd({weight}, torch::optim::SGDOptions(1.0));
    OptimWrapper wrapper(sgd, {.clip_grad = ClipGrad{.type = ClipGrad::Type::value, .clip_value = 0.5}});
    wrapper.update_params((weight * at::tensor({3.0, -0.25}, at::kDouble)).sum());
    QVERIFY(at::equal(weight.detach(), at::tensor({-0.5, 0.25}, at::kDouble)));
    QVERIFY(!wrapper.grad_norm());
  }

  void refuses_a_bound_of_zero_and_on_wish_a_norm_that_is_not_finite() {
    at::Tensor weight = at::zeros({2}, at::kDouble).requires_grad_();
    torch::optim::SGD sgd({weight}, torch::optim::SGDOptions(1.0));
    QVERIFY(
        thrown_by<std::invalid_argument>([&] { OptimWrapper(sgd, {.clip_grad = ClipGrad{}}); }).contains("max_norm"));
    OptimWrapper wrapper(sgd, {.clip_grad = ClipGrad{.max_norm = 1.0, .error_if_nonfinite = true}});
    QVERIFY(!thrown_by<std::runtime_error>([&] { wrapper.update_params((weight * infinity).sum()); }).isEmpty());
    QVERIFY(at::equal(weight.detach(), at::zeros({2}, at::kDouble)));
  }

  // --- reduction ----------------------------------------------------------------------------------------------------

  void reduces_on_boundaries_only() {
    CountedSync sync;
    Run run(4, &sync);
    run.init(0, 10);
    QList<int> after;
    for (std::int64_t m = 1; m <= 10; ++m) {
      run.train(m);
      after.append(sync.reductions);
    }
    QCOMPARE(after, (QList<int>{0, 0, 0, 1, 1, 1, 1, 2, 2, 3}));
    QVERIFY(sync.enabled);
    QVERIFY(run.line.w.grad().defined());  // zeroed where it lies, in the reducer's memory
    QCOMPARE(run.line.w.grad().item<double>(), 0.0);
  }

  void the_context_quiets_the_forward_and_may_outlive_the_backward() {
    CountedSync sync;
    Run run(2, &sync);
    {
      const OptimContext context = run.wrapper.optim_context(run.line);
      QVERIFY(!sync.enabled);
      run.wrapper.update_params(run.line.loss(1.0));
    }
    QVERIFY(sync.enabled);
    {
      const OptimContext context = run.wrapper.optim_context(run.line);
      QVERIFY(sync.enabled && context.empty());
      run.wrapper.update_params(run.line.loss(2.0));
    }
    QCOMPARE(sync.reductions, 1);
  }

  void a_context_left_open_is_an_error_where_it_would_part_the_ranks() {
    CountedSync sync;
    Run run(2, &sync);
    const OptimContext context = run.wrapper.optim_context(run.line);
    run.wrapper.update_params(run.line.loss(1.0));
    QVERIFY(thrown_by<std::logic_error>([&] { run.wrapper.update_params(run.line.loss(2.0)); }).contains("still open"));
    QVERIFY(thrown_by<std::logic_error>([&] { run.wrapper.step(); }).contains("still open"));
    QCOMPARE(run.line.weight(), 0.0);
  }

  void a_step_before_its_time_reduces_first() {
    CountedSync sync;
    Run run(4, &sync);
    run.wrapper.backward(run.line.loss(1.0));
    QCOMPARE(sync.reductions, 0);
    run.wrapper.step();
    QCOMPARE(sync.reductions, 1);
    run.wrapper.step();
    QCOMPARE(sync.reductions, 1);
  }

  // --- mixed precision ----------------------------------------------------------------------------------------------

  void an_overflow_at_any_position_skips_exactly_its_group_data() {
    QTest::addColumn<int>("dtype");
    QTest::newRow("float64") << static_cast<int>(at::kDouble);
    QTest::newRow("float32") << static_cast<int>(at::kFloat);
    QTest::newRow("float16") << static_cast<int>(at::kHalf);
    QTest::newRow("bfloat16") << static_cast<int>(at::kBFloat16);
  }

  void an_overflow_at_any_position_skips_exactly_its_group() {
    QFETCH(int, dtype);
    const auto type = static_cast<at::ScalarType>(dtype);
    for (std::int64_t infinite = 0; infinite < 9; ++infinite) {
      ScaledRun run(type), without(type);
      QString expected = "uuu";
      expected[infinite / 3] = 's';
      QCOMPARE(run.train(infinite), expected);
      without.train(-1, infinite / 3);
      QVERIFY(at::equal(run.weight.detach(), without.weight.detach()));
      QCOMPARE(run.moments().step(), 2);
      QVERIFY(at::equal(run.moments().exp_avg(), without.moments().exp_avg()));
      QCOMPARE(run.wrapper->loss_scaler().get_scale(), 512.0);
      QCOMPARE(run.wrapper->inner_count(), 9);
    }
  }

  void clips_true_gradients_under_a_scale() {
    at::Tensor weight = at::zeros({2}, at::kDouble).requires_grad_();
    torch::optim::SGD sgd({weight}, torch::optim::SGDOptions(1.0));
    AmpOptimWrapper wrapper(sgd, {.loss_scale = {.init_scale = 1024.0}},
                            {.accumulative_counts = 2, .clip_grad = ClipGrad{.max_norm = 1.0}});
    const at::Tensor slope = at::tensor({6.0, 8.0}, at::kDouble);
    wrapper.update_params((weight * slope).sum());
    QVERIFY(at::equal(weight.grad(), slope * 512.0));
    QCOMPARE(wrapper.update_params((weight * slope).sum()), StepOutcome::updated);
    QCOMPARE(wrapper.grad_norm().value(), 10.0);
    QVERIFY(near(weight.detach().norm().item<double>(), 10.0 / (10.0 + 1e-6)));
  }

  void a_static_scale_stays() {
    at::Tensor weight = at::zeros({1}, at::kFloat).requires_grad_();
    torch::optim::SGD sgd({weight}, torch::optim::SGDOptions(1.0));
    AmpOptimWrapper wrapper(sgd, {.loss_scale = {.growth_interval = 1}, .static_scale = 512.0});
    for (const double slope : {1.0, infinity, 1.0}) {
      wrapper.update_params((weight * slope).sum());
      QCOMPARE(wrapper.loss_scaler().get_scale(), 512.0);
    }
    QCOMPARE(weight.item<float>(), -2.0F);
  }

  void saves_the_scaler_under_its_key_and_no_counts() {
    ScaledRun run(at::kFloat);
    run.train(0);
    const StateDict state = run.wrapper->state_dict();
    QVERIFY(state.contains("optimizer") && state.contains("loss_scaler.scale"));
    ScaledRun fresh(at::kFloat);
    fresh.wrapper->load_state_dict(state);
    QCOMPARE(fresh.wrapper->loss_scaler().get_scale(), 512.0);
    QCOMPARE(fresh.wrapper->inner_count(), 0);
    QCOMPARE(fresh.moments().step(), 2);
    StateDict broken = state;
    broken.erase("optimizer");
    broken["loss_scaler.scale"] = state_number(4.0);
    QVERIFY(!thrown_by<std::invalid_argument>([&] { fresh.wrapper->load_state_dict(broken); }).isEmpty());
    QCOMPARE(fresh.wrapper->loss_scaler().get_scale(), 512.0);
    Run plain(2);
    const StateDict counts = plain.wrapper.state_dict();
    QCOMPARE(counts.size(), 1U);
    fresh.wrapper->load_state_dict(run.wrapper->OptimWrapper::state_dict());  // without a scaler's
    QCOMPARE(fresh.wrapper->loss_scaler().get_scale(), 512.0);
  }

  void the_context_lowers_operators_of_the_forward_alone() {
    torch::nn::Linear linear(2, 2);
    torch::optim::SGD sgd(linear->parameters(), torch::optim::SGDOptions(0.1));
    AmpOptimWrapper wrapper(sgd, {.dtype = at::kBFloat16});
    const at::Tensor x = at::ones({1, 2});
    at::Tensor y;
    {
      const OptimContext context = wrapper.optim_context(*linear);
      y = linear(x);
    }
    QCOMPARE(y.scalar_type(), at::kBFloat16);
    QCOMPARE(linear(x).scalar_type(), at::kFloat);
    QCOMPARE(wrapper.update_params(y.sum().to(at::kFloat)), StepOutcome::updated);
  }

  // --- the booster --------------------------------------------------------------------------------------------------

  void no_sync_covers_forward_and_backward() {
    const QString quiet = "(f)(b)", loud = "fbr";
    for (const Plugin& plugin : {torch_ddp_plugin(), low_level_zero_plugin(1)})
      QCOMPARE(letters_of(plugin, 3, 7), quiet + quiet + loud + quiet + quiet + loud + loud);
  }

  void the_replayed_narrow_no_sync_leaves_out_the_backward() {
    const std::vector<Replay> narrow{Replay::narrow_no_sync};
    QCOMPARE(letters_of(low_level_zero_plugin(1), 2, 3, narrow), QString("(f)brfbrfbr"));
    QCOMPARE(letters_of(torch_ddp_plugin(), 2, 2, narrow), QString("(f)(b)fbr"));
    Line line;
    torch::optim::SGD sgd(line.parameters(), torch::optim::SGDOptions(0.1));
    QVERIFY(thrown_by<std::invalid_argument>([&] {
              OptimWrapper(sgd, {.replay = {Replay::drain_early}});
            }).contains("restart_count"));
  }

  void without_accumulation_no_sync_is_never_asked_for() {
    QCOMPARE(letters_of(torch_ddp_plugin(), 1, 2), QString("fbrfbr"));
  }

  void a_plugin_without_no_sync_reduces_every_time() {
    for (const Plugin& plugin : {low_level_zero_plugin(2), gemini_plugin(), torch_fsdp_plugin()})
      QCOMPARE(letters_of(plugin, 2, 3), QString("fbrfbrfbr"));
  }

  void a_plugin_that_keeps_no_sum_cannot_accumulate() {
    Line line;
    torch::optim::SGD sgd(line.parameters(), torch::optim::SGDOptions(0.1));
    const auto scribe = std::make_shared<ScribeBooster>(gemini_plugin(false));
    QVERIFY(thrown_by<std::invalid_argument>([&] {
              ColossalAIOptimWrapper(sgd, scribe, 2);
            }).contains("enable_gradient_accumulation"));
    ColossalAIOptimWrapper(sgd, scribe, 1);
    QVERIFY(!thrown_by<std::invalid_argument>([] { low_level_zero_plugin(3); }).isEmpty());
  }

  void a_booster_without_no_sync_says_so() {
    Line line;
    torch::optim::SGD sgd(line.parameters(), torch::optim::SGDOptions(0.1));
    CountedSync sync;
    const auto optimizer = wrap(sgd);
    const auto booster = make_booster(low_level_zero_plugin(2), sync);
    QVERIFY(thrown_by<std::logic_error>([&] { booster->no_sync(&line, *optimizer); }).contains("stage 2"));
    booster->backward(line.loss(1.0), *optimizer);
    booster->backward(line.loss(1.0), *optimizer);
    QCOMPARE(sync.reductions, 2);
  }

  void the_context_needs_a_booster() {
    Line line;
    torch::optim::SGD sgd(line.parameters(), torch::optim::SGDOptions(0.1));
    ColossalAIOptimWrapper wrapper(sgd, nullptr, 2);
    QVERIFY(thrown_by<std::logic_error>([&] { auto context = wrapper.optim_context(line); }).contains("set_booster"));
    wrapper.backward(line.loss(1.0));
    QCOMPARE(line.w.grad().item<double>(), -4.0);
    wrapper.set_booster(std::make_shared<ScribeBooster>(torch_ddp_plugin()));
    QVERIFY(wrapper.optim_context(line).empty());
  }

  void a_failing_backward_has_been_counted_there() {
    Line line;
    torch::optim::SGD sgd(line.parameters(), torch::optim::SGDOptions(0.1));
    ColossalAIOptimWrapper wrapper(sgd, std::make_shared<ScribeBooster>(torch_ddp_plugin()), 3);
    QVERIFY(!thrown_by<c10::Error>([&] { wrapper.backward(at::ones({}, at::kDouble)); }).isEmpty());
    QCOMPARE(wrapper.inner_count(), 1);
  }

  void the_strategy_checks_what_its_system_checks() {
    QVERIFY(thrown_by<std::invalid_argument>([] {
              ColossalAIStrategy({.clip_grad = ClipGrad{.max_norm = 1.0}});
            }).contains("clip_grad"));
    QVERIFY(
        thrown_by<std::invalid_argument>([] { ColossalAIStrategy({.accumulative_counts = 2}); }).contains("max_iters"));
    Line line;
    torch::optim::SGD sgd(line.parameters(), torch::optim::SGDOptions(ten_batches_lr));
    const ColossalAIStrategy strategy({.accumulative_counts = 4, .max_iters = 10});
    const auto wrapper = strategy.build_optim_wrapper(wrap(sgd), std::make_shared<ScribeBooster>(torch_ddp_plugin()));
    strategy.prepare(line, *wrapper);
    for (std::int64_t m = 1; m <= 10; ++m) train_step(*wrapper, line, [&] { return line.loss(batch_of(m)); });
    QVERIFY(near(line.weight(), 1.90070125));
    ColossalAIStrategy({}).prepare(line, *wrapper);
    QCOMPARE(wrapper->max_counts(), unset_counts);
  }
};

}  // namespace

QTEST_GUILESS_MAIN(TestMmengineAccumulation)
#include "test_mmengine_accumulation.moc"
