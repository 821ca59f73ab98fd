// SPDX-License-Identifier: Apache-2.0
// OptimWrapper in one process: the numbers of MMEngine's own counting rules, what it does at the end of a run and after
// a resume, when it reduces, and how schedules move beside it.
#include <ATen/ATen.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <QTest>
#include <cmath>

#include "accrue/accumulation/base_scheduler.h"
#include "accrue/accumulation/mmengine/colossalai_optim_wrapper.h"
#include "accrue/accumulation/mmengine/param_scheduler_hook.h"
#include "support/counted_sync.h"
#include "support/refusals.h"
#include "support/ten_batches.h"
#include "support/test_program.h"

namespace test_mmengine_accumulation {

using namespace accrue;
using namespace accrue::mmengine;
using namespace accrue::test;

namespace {

double scaled_one(const OptimWrapper& wrapper) {
  return wrapper.scale_loss(at::ones({}, at::kDouble)).item<double>();
}

/// One weight under SGD in a wrapper that counts its warnings.
struct Run {
  explicit Run(std::int64_t counts, GradSync* sync = nullptr)
      : optimizer(line.parameters(), torch::optim::SGDOptions(ten_batch_lr)),
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

/// BatchNorm two modules down.
struct Deep : torch::nn::Module {
  Deep() {
    const auto block = std::make_shared<torch::nn::Module>();
    block->register_module("norm", torch::nn::BatchNorm1d(2));
    register_module("block", block);
  }
};

class TestMmengineAccumulation : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // --- counting -----------------------------------------------------------------------------------------------------

  void every_micro_step_knows_its_divisor_and_whether_it_updates_data() {
    QTest::addColumn<bool>("boosted");
    QTest::addColumn<int>("count");
    QTest::addColumn<int>("most");
    QTest::addColumn<int>("remainder");
    QTest::addColumn<QString>("outcomes");  ///< of the next calls: the divisor, and ! for an update
    QTest::addColumn<int>("warnings");
    for (const bool boosted : {false, true}) {
      const auto row = [boosted](const char* words) -> QTestData& {
        return QTest::addRow("%s%s", words, boosted ? ", through a booster" : "") << boosted;
      };
      row("an open run") << 0 << -1 << -1 << "3 3 3!" << 0;
      row("an open run, later") << 99 << -1 << -1 << "3" << 0;
      row("one is left") << 99 << 100 << 1 << "1!" << 0;
      row("four are left") << 96 << 100 << 1 << "3 3 3! 1!" << 0;
      row("a whole run") << 0 << 100 << 1 << "3 3 3!" << 0;
      row("goes on inside a group") << 2 << 100 << 1 << "3!" << 1;
    }
  }
  void every_micro_step_knows_its_divisor_and_whether_it_updates() {
    QFETCH(bool, boosted);
    QFETCH(int, count);
    QFETCH(int, most);
    QFETCH(int, remainder);
    QFETCH(QString, outcomes);
    QFETCH(int, warnings);
    auto [line, sgd] = SgdLine();
    CountedSync sync;
    QStringList warned;
    const auto warn = [&warned](const std::string& text) { warned << QString::fromStdString(text); };
    ColossalAIOptimWrapper through_booster(sgd, make_booster(torch_ddp_plugin(), sync), 3, warn);
    OptimWrapper plain(sgd, {.accumulative_counts = 3, .warn = warn});
    OptimWrapper& wrapper = boosted ? through_booster : plain;
    wrapper.initialize_count_status(line, count, most);
    QCOMPARE(wrapper.remainder_counts(), remainder);
    QCOMPARE(wrapper.max_counts(), most);
    QStringList seen;
    const auto expected = outcomes.split(' ');
    for (qsizetype call = 0; call < expected.size(); ++call) {
      const double scaled = scaled_one(wrapper);
      const bool syncs = wrapper.should_sync();
      const StepOutcome outcome = train_step(wrapper, line, [&] { return line.loss(1.0); }).outcome;
      QCOMPARE(outcome, syncs ? StepOutcome::updated : StepOutcome::accumulated);
      QCOMPARE(wrapper.should_update(), syncs);
      seen.append(QString::number(1.0 / scaled) + (syncs ? "!" : ""));
    }
    QCOMPARE(seen, expected);
    QCOMPARE(wrapper.inner_count(), count + expected.size());
    QCOMPARE(warned.size(), warnings);
    for (const QString& each : warned) QVERIFY2(each.contains(u"lost"), qPrintable(each));
  }

  void momenta_are_told_by_group() {
    Line line;
    torch::optim::SGD sgd(line.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    torch::optim::Adam adam(line.parameters(), torch::optim::AdamOptions(0.1).betas({0.8, 0.99}));
    QCOMPARE(OptimWrapper(sgd).get_momentum().at("momentum"), std::vector<double>{0.9});
    QCOMPARE(OptimWrapper(adam).get_momentum().at("momentum"), std::vector<double>{0.8});
  }

  void settings_of_an_update_go_to_its_step_and_its_clearing() {
    Run run(2);
    int calls = 0;
    for (int m = 1; m <= 4; ++m) {
      const at::Tensor loss = run.line.w.sum();
      run.wrapper.update_params(loss, {.closure =
                                           [&] {
                                             ++calls;
                                             return loss;
                                           },
                                       .set_to_none = false});
      QVERIFY(run.line.w.grad().defined());
    }
    QCOMPARE(calls, 2);
    const at::Tensor loss = run.line.w.square().sum();
    run.wrapper.backward(loss, {.retain_graph = true});
    run.wrapper.backward(loss);
    QVERIFY_EXCEPTION_THROWN(run.wrapper.backward(loss), std::exception);
  }

  void batch_norm_warns_once_and_only_where_windows_are_longer_than_one() {
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
    ACCRUE_NEAR(run.line.weight(), 0.02);
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

  void windows_run_across_epochs_and_the_last_one_is_divided_by_its_size_data() {
    QTest::addColumn<int>("most");
    QTest::addColumn<QList<std::int64_t>>("updates");
    QTest::addColumn<double>("weight");
    using List = QList<std::int64_t>;
    QTest::newRow("one epoch") << 10 << List{4, 8, 10} << 1.90070125;
    QTest::newRow("two epochs") << 20 << List{4, 8, 12, 16, 20} << weight_after({0.925, 0.565, 0.535, 0.785, 0.265});
    QTest::newRow("three epochs") << 30 << List{4, 8, 12, 16, 20, 24, 28, 30}
                                  << weight_after({0.925, 0.565, 0.535, 0.785, 0.265, 0.925, 0.565, 0.095});
  }
  void windows_run_across_epochs_and_the_last_one_is_divided_by_its_size() {
    QFETCH(int, most);
    QFETCH(QList<std::int64_t>, updates);
    QFETCH(double, weight);
    Run run(4);
    run.init(0, most);
    QCOMPARE(run.train(1, most), updates);
    ACCRUE_NEAR(run.line.weight(), weight);
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

  void lengths_that_windows_fill_or_do_not_reach_have_their_rule() {
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
      ACCRUE_NEAR(1.0 / scaled_one(run.wrapper), each.last_divisor);
      updates += run.train(each.most, each.most);
      QCOMPARE(updates, each.updates);
    }
  }

  // --- beyond the end, and after a resume ---------------------------------------------------------------------------

  void beyond_a_run_of_whole_windows_it_says_what_to_do() {
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

  void a_resumed_window_keeps_its_phase_and_its_divisor() {
    Run run(3);
    run.init(2, 9);
    QVERIFY(run.wrapper.should_sync());
    QCOMPARE(run.train(3), StepOutcome::updated);  // one micro-step, divided by three
    ACCRUE_NEAR(run.line.weight(), weight_after({1.0 - ten_batch_lr * 2.0 * 9.0 / 3.0}));
    QCOMPARE(run.train(4, 9), (QList<std::int64_t>{6, 9}));
  }

  void a_resumed_run_still_flushes_its_last_window() {
    Run run(4);
    const ColossalAIStrategy strategy({.accumulative_counts = 4, .max_iters = 10});
    strategy.prepare(run.line, run.wrapper);
    run.train(1, 4);
    strategy.resume(run.line, run.wrapper, 4);
    QCOMPARE(run.train(5, 10), (QList<std::int64_t>{8, 10}));
    ACCRUE_NEAR(run.line.weight(), 1.90070125);
  }

  void the_replayed_restart_of_the_count_loses_the_last_window() {
    Run run(4);
    const ColossalAIStrategy strategy({.accumulative_counts = 4, .max_iters = 10, .replay = {Replay::restart_count}});
    strategy.prepare(run.line, run.wrapper);
    run.train(1, 4);
    strategy.resume(run.line, run.wrapper, 4);
    QCOMPARE(run.wrapper.inner_count(), 0);
    QCOMPARE(run.train(5, 10), (QList<std::int64_t>{8}));
    ACCRUE_NEAR(run.line.weight(), 0.95475);
    ACCRUE_NEAR(run.line.w.grad().item<double>(), -94.595125);
  }

  // --- schedules ----------------------------------------------------------------------------------------------------

  void schedules_by_iteration_move_inside_a_window_and_by_epoch_at_its_end() {
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
      const double rate = run.wrapper.get_lr().at("lr").at(0) / ten_batch_lr;
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

  void an_optimizer_may_come_from_a_configuration() {
    Line line;
    auto optimizer = build_optimizer({line.w}, {"AdamW", {{"lr", {0.25}}, {"betas", {0.8, 0.9}}, {"amsgrad", {1.0}}}});
    OptimWrapper wrapper(std::move(optimizer), {.accumulative_counts = 1});
    const auto& options = static_cast<const torch::optim::AdamWOptions&>(wrapper.param_groups().at(0).options());
    QCOMPARE(options.lr(), 0.25);
    QVERIFY(options.amsgrad() && std::get<1>(options.betas()) == 0.9);
    QCOMPARE(options.weight_decay(), torch::optim::AdamWOptions().weight_decay());
    QCOMPARE(wrapper.get_momentum().at("momentum"), std::vector<double>{0.8});
    wrapper.update_params(line.loss(1.0));
    QVERIFY(line.weight() != 0.0);
    QCOMPARE(build_optimizer({line.w}, {"SGD", {}})->param_groups().at(0).options().get_lr(), 1e-3);  // as Python's
    const auto refused_config = [&](const OptimizerConfig& config) {
      return thrown_by<std::invalid_argument>([&] { build_optimizer({line.w}, config); });
    };
    QVERIFY(refused_config({"Lion", {}}).contains("Adagrad"));
    QVERIFY(refused_config({"SGD", {{"learning_rate", {0.1}}}}).contains("lr, momentum"));
    QVERIFY(refused_config({"Adam", {{"betas", {0.9}}}}).contains("2 numbers"));
  }

  void several_parameter_groups_have_a_base_rate() {
    Line one, two;
    torch::optim::SGD sgd(
        {torch::optim::OptimizerParamGroup({one.w}),
         torch::optim::OptimizerParamGroup({two.w}, std::make_unique<torch::optim::SGDOptions>(0.25))},
        torch::optim::SGDOptions(0.5).momentum(0.75));
    OptimWrapper wrapper(sgd);
    LambdaLR halved(sgd, [](std::int64_t n) { return std::pow(0.5, static_cast<double>(n)); });
    halved.step();
    QCOMPARE(wrapper.get_lr().at("lr"), (std::vector<double>{0.25, 0.125}));
    QCOMPARE(wrapper.get_lr().at("base_lr"), std::vector<double>{0.25});
    QCOMPARE(wrapper.get_momentum().at("base_momentum"), std::vector<double>{0.75});
    torch::optim::SGD single({one.w}, torch::optim::SGDOptions(0.5));
    QVERIFY(!OptimWrapper(single).base_param_settings());
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
    QVERIFY(!run.line.w.grad().defined());  // dropped, as the original does, with a reducer as without
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
};

}  // namespace

ACCRUE_TEST_MAIN(TestMmengineAccumulation)

}  // namespace test_mmengine_accumulation
#include "test_mmengine_accumulation.moc"
