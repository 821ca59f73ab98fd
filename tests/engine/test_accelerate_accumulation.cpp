// SPDX-License-Identifier: Apache-2.0
// Accelerate's accumulation on one rank, against the numbers of the original: the documented eight points, the
// causal-LM toy, and the ten-batch case with its updates, divisors, schedule and what is left in the gradients. Also of
// loops that do not do everything through the Accelerator.
#include <torch/optim/adamw.h>

#include <QTest>

#include "support/accelerate_cases.h"
#include "support/test_program.h"

namespace test_accelerate_accumulation {

using namespace accrue;
using namespace accrue::test;

namespace {

std::unique_ptr<Communicator> alone() {
  return single_communicator();
}

AcceleratorOptions four_steps(bool flush) {
  AcceleratorOptions options;
  options.gradient_accumulation_plugin = GradientAccumulationPlugin{.num_steps = 4, .sync_with_dataloader = flush};
  return options;
}

}  // namespace

class TestAccelerateAccumulation : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_documented_eight_points_give_2_04_data() {
    QTest::addColumn<int>("clear");
    QTest::addColumn<bool>("ownBackward");
    QTest::addColumn<bool>("gated");
    const std::vector<std::pair<const char*, ClearAt>> places = {
        {"after the step", ClearAt::after_step},
        {"before the scope", ClearAt::before_scope},
        {"in the scope before the backward", ClearAt::before_backward}};
    for (const auto& [words, clear] : places) {
      QTest::addRow("cleared %s", words) << int(clear) << false << false;
      QTest::addRow("a plain backward, cleared %s", words) << int(clear) << true << false;
      QTest::addRow("a plain backward, gated, cleared %s", words) << int(clear) << true << true;
    }
  }
  void the_documented_eight_points_give_2_04() {
    QFETCH(int, clear);
    QFETCH(bool, ownBackward);
    QFETCH(bool, gated);
    const double w =
        run_eight_points({.clear = ClearAt(clear), .own_backward = ownBackward, .step_on_boundary_only = gated});
    QVERIFY2(near(w, 2.04), qPrintable(QString::number(w, 'g', 17)));
    for (const double wrong : {8.16, 1.13, 0.05}) QVERIFY(std::abs(w - wrong) > 0.5);
  }

  void the_replay_switch_lets_a_clear_before_the_backward_destroy_the_window() {
    const ReplaySwitches replay{.zero_before_backward = true};
    for (const bool own : {false, true}) {
      const double w = run_eight_points({.clear = ClearAt::before_backward, .replay = replay, .own_backward = own});
      QVERIFY2(near(w, 1.13), qPrintable(QString::number(w, 'g', 17)));
    }
    QVERIFY(near(run_eight_points({.replay = replay}), 2.04));
  }

  void micro_gradients_are_divided_by_n_and_add_up() {
    TrainedLine t({.gradient_accumulation_steps = 4}, 0.02);
    auto loader = t.accelerator.prepare(value_loader(8, {.batch_size = 2}));
    std::vector<double> shares;
    double before = 0.0;
    for (const at::Tensor& x : loader) {
      const auto scope = t.accelerator.accumulate(t.model);
      t.accelerator.backward(t.model.loss(x));
      shares.push_back(t.model.gradient() - before);
      before = t.model.gradient();
    }
    QCOMPARE(shares, (std::vector<double>{-2.5, -12.5, -30.5, -56.5}));
    QCOMPARE(before, -102.0);
  }

  void the_token_recipe_divides_by_all_tokens_data() {
    QTest::addColumn<int>("batchSize");
    QTest::addColumn<int>("steps");
    QTest::newRow("one batch of eight") << 8 << 1;
    QTest::newRow("two batches of four") << 4 << 2;
  }
  void the_token_recipe_divides_by_all_tokens() {
    QFETCH(int, batchSize);
    QFETCH(int, steps);
    const Tokens got = run_token_recipe(*alone(), 8, batchSize, steps);
    QCOMPARE(got.items, 36.0);
    QVERIFY2(near(got.first, 0.0952785681, 5e-11), qPrintable(QString::number(got.first, 'g', 12)));
    QVERIFY2(near(got.second, 0.4336782027, 5e-11), qPrintable(QString::number(got.second, 'g', 12)));
    QVERIFY2(near(got.loss, 1.1212300119, 5e-11), qPrintable(QString::number(got.loss, 'g', 12)));
    QVERIFY(!near(got.first, 0.0775155772, 1e-3));
  }

  void a_mean_of_means_is_another_number() {
    const Tokens got = run_mean_of_means(*alone(), 8, 4, 2);
    QVERIFY2(near(got.first, 0.0775155772, 5e-11), qPrintable(QString::number(got.first, 'g', 12)));
    QVERIFY(near(got.second, 0.4514411937, 5e-11));
    QVERIFY2(near(got.loss, 1.0410395, 5e-8), qPrintable(QString::number(got.loss, 'g', 12)));
  }

  void ten_batches_flush_at_each_end_of_the_epoch() {
    const TenBatches seen = run_ten_batches(four_steps(true), *alone(), 3);
    QCOMPARE(seen.updates_by, (std::vector<std::size_t>{3, 6, 9}));
    QCOMPARE(seen.boundaries, (std::vector<int>{4, 8, 10, 14, 18, 20, 24, 28, 30}));
    QCOMPARE(seen.updates, seen.boundaries);
    QVERIFY(near(seen.after_epoch[0], 1.427725625));
    QCOMPARE(seen.left, 0.0);
    QCOMPARE(seen.schedule.substr(0, 10), std::string("0001111223"));
    QCOMPARE((std::vector<std::int64_t>{seen.rates.begin(), seen.rates.begin() + 3}),
             (std::vector<std::int64_t>{0, 1, 2}));
    for (const double divisor : seen.divisors) QVERIFY(near(divisor, 4.0, 1e-9));
  }

  void ten_batches_carry_where_the_loader_does_not_count() {
    const TenBatches seen = run_ten_batches(four_steps(false), *alone(), 3);
    QCOMPARE(seen.updates_by, (std::vector<std::size_t>{2, 5, 7}));
    QCOMPARE(seen.updates, (std::vector<int>{4, 8, 12, 16, 20, 24, 28}));
    QVERIFY(near(seen.after_epoch[0], 0.95475));
    QVERIFY2(near(seen.left, -94.595125), qPrintable(QString::number(seen.left, 'g', 17)));
    QCOMPARE(seen.schedule.substr(0, 10), std::string("0001111222"));
    QCOMPARE((std::vector<std::int64_t>{seen.rates.begin(), seen.rates.begin() + 2}),
             (std::vector<std::int64_t>{0, 1}));
    for (const double divisor : seen.divisors) QVERIFY(near(divisor, 4.0, 1e-9));
  }

  void the_result_does_not_depend_on_where_the_loop_clears() {
    for (const bool flush : {true, false}) {
      const TenBatches after = run_ten_batches(four_steps(flush), *alone(), 3);
      for (const ClearAt clear : {ClearAt::before_scope, ClearAt::before_backward}) {
        const TenBatches other = run_ten_batches(four_steps(flush), *alone(), 3, 10, clear);
        QCOMPARE(other.after_epoch, after.after_epoch);
        QCOMPARE(other.updates, after.updates);
      }
    }
  }

  void every_length_of_an_epoch_has_its_updates_data() {
    QTest::addColumn<int>("length");
    QTest::addColumn<int>("flushed");
    QTest::addColumn<int>("carried");
    QTest::newRow("no batch") << 0 << 0 << 0;
    QTest::newRow("fewer than N") << 3 << 3 << 2;
    QTest::newRow("N") << 4 << 3 << 3;
    QTest::newRow("N and one") << 5 << 6 << 3;
    QTest::newRow("two N") << 8 << 6 << 6;
  }
  void every_length_of_an_epoch_has_its_updates() {
    QFETCH(int, length);
    QFETCH(int, flushed);
    QFETCH(int, carried);
    QCOMPARE(int(run_ten_batches(four_steps(true), *alone(), 3, length).updates.size()), flushed);
    QCOMPARE(int(run_ten_batches(four_steps(false), *alone(), 3, length).updates.size()), carried);
  }

  void without_accumulate_every_step_is_taken() {
    TrainedLine t({.gradient_accumulation_steps = 2}, 0.5, 0.0);
    auto& scheduler = t.schedule([](auto) { return 1.0; });
    QVERIFY(t.accelerator.sync_gradients());
    for (int i = 1; i <= 3; ++i) {
      t.accelerator.backward(t.model.loss(points({1.0})));  // still divided by N
      QVERIFY(t.optimizer.step() == StepOutcome::updated);
      t.optimizer.zero_grad();
      scheduler.step();
      QCOMPARE(scheduler.position(), i);
      QCOMPARE(t.model.value(), 2.0 - std::pow(0.5, i) * 2.0);
    }
  }

  void the_flag_can_be_set_and_holds_until_the_next_micro_step() {
    TrainedLine t({.gradient_accumulation_steps = 3});
    std::vector<bool> flags;
    for (int m = 1; m <= 6; ++m) {
      const auto scope = t.accelerator.accumulate(t.model);
      flags.push_back(t.accelerator.sync_gradients());
      t.accelerator.backward(t.model.loss(points({1.0})));
      if (m == 2) {
        QVERIFY(t.optimizer.step() == StepOutcome::accumulated);
        t.accelerator.set_sync_gradients(true);
        QVERIFY(t.optimizer.step() == StepOutcome::updated);
        t.optimizer.zero_grad();
      }
    }
    QCOMPARE(flags, (std::vector<bool>{false, false, true, false, false, true}));
  }

  void n_can_change_at_run_time() {
    TrainedLine t({.gradient_accumulation_steps = 2});
    std::vector<int> boundaries;
    for (int m = 1; m <= 12; ++m) {
      if (m == 6) t.accelerator.set_gradient_accumulation_steps(3);
      t.micro_step();
      if (t.accelerator.sync_gradients()) boundaries.push_back(m);
    }
    QCOMPARE(boundaries, (std::vector<int>{2, 4, 6, 9, 12}));
    QCOMPARE(t.accelerator.gradient_accumulation_steps(), 3);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, t.accelerator.set_gradient_accumulation_steps(0));
  }

  void an_early_break_leaves_the_step_where_it_was() {
    TrainedLine t({.gradient_accumulation_steps = 4});
    auto loader = t.accelerator.prepare(value_loader(10, {.batch_size = 1}));
    std::vector<int> boundaries;
    int m = 0;
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (const at::Tensor& x : loader) {
        ++m;
        t.micro_step(0.0, x);
        if (t.accelerator.sync_gradients()) boundaries.push_back(m);
        if (m == 3) break;
      }
      QVERIFY(!t.accelerator.state().in_dataloader());
    }
    QCOMPARE(boundaries, (std::vector<int>{4, 8, 12, 13, 17, 21, 23}));
  }

  void slices_of_the_last_batch_are_boundaries_each() {
    TrainedLine t({.gradient_accumulation_steps = 4});
    auto loader = t.accelerator.prepare(value_loader(4, {.batch_size = 2}));
    std::vector<bool> flags;
    for (const at::Tensor& x : loader)
      for (int slice = 0; slice < 2; ++slice) {
        t.micro_step(1.0, x.narrow(0, slice, 1));
        flags.push_back(t.accelerator.sync_gradients());
      }
    QCOMPARE(flags, (std::vector<bool>{false, false, true, true}));
  }

  void evaluating_inside_a_window_changes_nothing_data() {
    QTest::addColumn<bool>("prepared");
    QTest::newRow("with a loader of its own") << false;
    QTest::newRow("with a prepared loader") << true;
  }
  void evaluating_inside_a_window_changes_nothing() {
    QFETCH(bool, prepared);
    const auto run = [&](int evaluate_at) {
      TrainedLine t({.gradient_accumulation_steps = 4}, 0.005);
      auto& scheduler = t.schedule([](auto n) { return std::pow(0.9, n); });
      auto loader = t.accelerator.prepare(value_loader(10, {.batch_size = 1}));
      auto held_out = t.accelerator.prepare(value_loader(6, {.batch_size = 2}));
      int m = 0;
      std::vector<double> trace;
      for (const at::Tensor& x : loader) {
        const auto scope = t.accelerator.accumulate(t.model);
        t.accelerator.backward(t.model.loss(x));
        if (++m == evaluate_at) {
          const at::NoGradGuard no_grad;
          double sum = 0.0;
          if (prepared)
            for (const at::Tensor& each : held_out) sum += t.model.loss(each).item<double>();
          else
            for (int i = 0; i < 3; ++i) sum += t.model.loss(points({1.0 * i})).item<double>();
          Q_UNUSED(sum)
        }
        trace.push_back(t.model.gradient());
        t.optimizer.step();
        scheduler.step();
        t.optimizer.zero_grad();
        trace.push_back(t.model.value());
        trace.push_back(double(scheduler.position()));
      }
      return trace;
    };
    const auto undisturbed = run(0);
    for (int m = 1; m <= 10; ++m) QCOMPARE(run(m), undisturbed);
  }

  void several_models_share_one_scope() {
    TwoLines t({.gradient_accumulation_steps = 2});
    for (int m = 1; m <= 4; ++m) {
      const auto scope = t.accelerator.accumulate(t.a, t.b);
      t.step_a.zero_grad();  // the order of many adversarial loops: each clears before its own backward
      t.accelerator.backward(t.a.loss(points({1.0})));
      t.step_a.step();
      t.step_b.zero_grad();
      t.accelerator.backward(t.b.loss(points({2.0})));
      t.step_b.step();
      QCOMPARE(t.accelerator.sync_gradients(), m % 2 == 0);
    }
    // Two updates of a whole group each: w - 2 shrinks by 1 - 0.1 * 2 x^2.
    QVERIFY(near(t.a.value(), 2.0 - 2.0 * 0.64));
    QVERIFY(near(t.b.value(), 2.0 - 2.0 * 0.04));
  }

  /// The numbers are those of accelerate 1.15.0 over torch 2.11.0, with the same loop.
  void unused_parameters_end_where_the_originals_do() {
    const auto axis = alone();
    OriginLine always(1.0), twice(1.0), never(1.0);
    torch::optim::AdamW adamw({always.w, twice.w, never.w}, torch::optim::AdamWOptions(0.1).weight_decay(0.1));
    Accelerator accelerator({.gradient_accumulation_steps = 2}, *axis);
    for (OriginLine* each : {&always, &twice, &never}) accelerator.prepare(*each);
    auto& optimizer = accelerator.prepare(adamw);
    for (int m = 1; m <= 6; ++m) {
      const auto scope = accelerator.accumulate(always, twice, never);
      const at::Tensor x = points({1.0 * m});
      at::Tensor loss = always.loss(x);
      if (m == 1 || m == 5) loss = loss + at::mse_loss(x * twice.w, 3 * x);
      accelerator.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
    }
    QVERIFY2(near(always.value(), 1.2405888030720995), qPrintable(QString::number(always.value(), 'g', 17)));
    QVERIFY2(near(twice.value(), 1.156251227552441), qPrintable(QString::number(twice.value(), 'g', 17)));
    QCOMPARE(never.value(), 1.0);
  }

  /// The same, with torch.amp.GradScaler; an infinity in the second window.
  void a_scale_that_moves_gives_the_originals_numbers() {
    TrainedLine t({.gradient_accumulation_steps = 3,
                   .mixed_precision = MixedPrecision::fp16,
                   .grad_scaler = {.init_scale = 1024.0, .growth_interval = 2}},
                  0.01);
    auto& scheduler = t.schedule([](auto n) { return std::pow(0.9, n); });
    const std::vector<double> weights = {0.0499999987068966, 0.0499999987068966, 0.13549999601113127,
                                         0.2452549925743898, 0.3706065387162026};
    const std::vector<double> scales = {1024, 512, 512, 1024, 1024}, rates = {0.009, 0.009, 0.0081, 0.00729, 0.006561};
    for (int m = 1; m <= 15; ++m) {
      const auto scope = t.accelerator.accumulate(t.model);
      const at::Tensor loss = t.model.loss(points({1.0 + m % 4}));
      t.accelerator.backward(m == 5 ? loss * HUGE_VAL : loss);
      if (t.accelerator.sync_gradients()) t.accelerator.clip_grad_norm_({t.model.w}, 5.0);
      t.optimizer.step();
      scheduler.step();
      t.optimizer.zero_grad();
      if (m % 3 != 0) continue;
      const auto window = static_cast<std::size_t>(m / 3 - 1);
      QVERIFY2(near(t.model.value(), weights[window]), qPrintable(QString::number(t.model.value(), 'g', 17)));
      QCOMPARE(t.accelerator.scaler()->get_scale(), scales[window]);
      QCOMPARE(t.optimizer.step_was_skipped(), window == 1);
      QVERIFY(near(scheduler.get_last_lr()[0], rates[window]));
    }
  }

  void two_accelerators_know_nothing_of_each_other() {
    TrainedLine first({.gradient_accumulation_steps = 2}), second({.gradient_accumulation_steps = 3});
    std::vector<bool> flags;
    for (int m = 1; m <= 3; ++m) {
      second.micro_step();
      first.micro_step();
      flags.push_back(first.accelerator.sync_gradients());
    }
    QCOMPARE(flags, (std::vector<bool>{false, true, false}));
    QVERIFY(second.accelerator.sync_gradients());
    QCOMPARE(second.accelerator.gradient_accumulation_steps(), 3);
  }

  // --- loops that do not do everything through the Accelerator
  // --------------------------------------------------------

  void a_boundary_whose_gradients_are_cleared_without_a_step_is_given_up() {
    TrainedLine t({.gradient_accumulation_steps = 2}, 0.02);
    for (int m = 1; m <= 2; ++m) {
      const auto scope = t.accelerator.accumulate(t.model);
      t.model.loss(points({1.0})).backward();
      t.optimizer.zero_grad();
      QCOMPARE(t.model.gradient(), m == 1 ? -4.0 : 0.0);
    }
  }

  void gradients_made_by_hand_belong_to_the_window() {
    const auto axis = alone();
    OriginLine model;
    torch::optim::SGD sgd(model.parameters(), torch::optim::SGDOptions(1.0));
    Accelerator accelerator({.gradient_accumulation_steps = 2}, *axis);
    auto& optimizer = accelerator.prepare(sgd);  // the model itself is not prepared
    for (int m = 1; m <= 2; ++m) {
      const auto scope = accelerator.accumulate();
      optimizer.zero_grad();
      const at::Tensor before = model.w.grad().defined() ? model.w.grad() : at::zeros({1}, at::kDouble);
      model.w.mutable_grad() = before + 1.0;
      optimizer.step();
    }
    QCOMPARE(model.value(), -2.0);
  }
};

ACCRUE_TEST_MAIN(TestAccelerateAccumulation)

}  // namespace test_accelerate_accumulation
#include "test_accelerate_accumulation.moc"
