// SPDX-License-Identifier: Apache-2.0
// Calls of an Accelerator and of what it prepared that a loop makes now and then.
#include <QtTest/QTest>

#include <sstream>

#include "support/accelerate_cases.h"

using namespace accrue;
using namespace accrue::test;

class TestAccelerateCalls : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void micro_plan_says_where_the_loop_stands() {
    const auto axis = single_communicator();
    Line model;
    Accelerator accelerator({.gradient_accumulation_steps = 4}, *axis);
    accelerator.prepare(model);
    auto loader = accelerator.prepare(value_loader(6, {.batch_size = 1}));
    QStringList told;
    for (const at::Tensor& batch : loader) {
      const auto scope = accelerator.accumulate(model);
      const MicroPlan& plan = accelerator.micro_plan();
      told << QStringLiteral("%1 of %2%3").arg(plan.position + 1).arg(plan.window_size).arg(plan.update ? "!" : "");
      QCOMPARE(plan.update, accelerator.sync_gradients());
      accelerator.backward(model.loss(batch));
    }
    QCOMPARE(told.join(", "), QStringLiteral("1 of 4, 2 of 4, 3 of 4, 4 of 4!, 1 of 4, 2 of 4!"));
  }

  void gradients_are_unscaled_once_whoever_asks() {
    const auto axis = single_communicator();
    Line model;
    torch::optim::SGD sgd(model.parameters(), torch::optim::SGDOptions(0.5));
    Accelerator accelerator({.mixed_precision = MixedPrecision::fp16, .grad_scaler = {.init_scale = 1024.0}}, *axis);
    accelerator.prepare(model);
    AcceleratedOptimizer& optimizer = accelerator.prepare(sgd);
    const auto scope = accelerator.accumulate(model);
    accelerator.backward(model.loss(points({1.0})));  // d(w - 2)^2 at 0: -4
    QCOMPARE(model.gradient(), -4.0 * 1024.0);
    accelerator.unscale_gradients(&optimizer);
    QCOMPARE(model.gradient(), -4.0);
    QVERIFY(optimizer.step() == StepOutcome::updated);
    QCOMPARE(model.value(), 2.0);
  }

  void a_loader_goes_on_where_it_was_and_then_begins_anew() {
    const auto axis = single_communicator();
    Accelerator accelerator({}, *axis);
    auto loader = accelerator.prepare(value_loader(5, {.batch_size = 1}));
    loader.skip_first_batches(3);
    const auto read = [&loader] {
      QStringList values;
      for (const at::Tensor& batch : loader) values << QString::number(batch.item<double>());
      return values.join(' ');
    };
    QCOMPARE(read(), QStringLiteral("4 5"));
    QCOMPARE(read(), QStringLiteral("1 2 3 4 5"));
  }

  void an_epochs_order_follows_its_number() {
    const auto axis = single_communicator();
    Accelerator accelerator({}, *axis);
    auto loader = accelerator.prepare(value_loader(40, {.batch_size = 1, .shuffle = true}));
    const auto read = [&loader](std::int64_t epoch) {
      loader.set_epoch(epoch);
      QStringList values;
      for (const at::Tensor& batch : loader) values << QString::number(batch.item<double>());
      return values.join(' ');
    };
    const QString first = read(0);
    const QString second = read(1);
    QVERIFY(first != second);
    QCOMPARE(read(0), first);
    QCOMPARE(read(1), second);
  }

  void the_rates_are_printed_one_a_group() {
    const auto axis = single_communicator();
    Line one;
    Line two;
    torch::optim::SGD sgd(
        {torch::optim::OptimizerParamGroup(one.parameters()),
         torch::optim::OptimizerParamGroup(two.parameters(), std::make_unique<torch::optim::SGDOptions>(0.25))},
        torch::optim::SGDOptions(0.5));
    Accelerator accelerator({}, *axis);
    accelerator.prepare(sgd);
    AcceleratedScheduler& scheduler =
        accelerator.prepare(std::make_shared<LambdaLR>(sgd, [](std::int64_t) { return 1.0; }));
    std::ostringstream text;
    scheduler.print_lr(text);
    QVERIFY2(text.str().find("0.5") != std::string::npos && text.str().find("0.25") != std::string::npos,
             text.str().c_str());
  }
};

QTEST_GUILESS_MAIN(TestAccelerateCalls)
#include "test_accelerate_calls.moc"
