// SPDX-License-Identifier: Apache-2.0
// Calls of an Accelerator and of what it prepared that a loop makes now and then.
#include <QTest>

#include <torch/nn/modules/linear.h>

#include <sstream>
#include <type_traits>

#include "support/accelerate_cases.h"
#include "support/test_program.h"

namespace test_accelerate_calls {

using namespace accrue;
using namespace accrue::test;

namespace {

QString values_of(PreparedLoader<at::Tensor>& loader) {
  QStringList values;
  for (const at::Tensor& batch : loader) values << QString::number(batch.item<double>());
  return values.join(' ');
}

}  // namespace

class TestAccelerateCalls : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void micro_plan_says_where_the_loop_stands() {
    TrainedLine t({.gradient_accumulation_steps = 4});
    auto loader = t.accelerator.prepare(value_loader(6, {.batch_size = 1}));
    QStringList told;
    for (const at::Tensor& batch : loader) {
      t.micro_step(1.0, batch);
      const MicroPlan& plan = t.accelerator.micro_plan();
      told << QStringLiteral("%1 of %2%3").arg(plan.position + 1).arg(plan.window_size).arg(plan.update ? "!" : "");
      QCOMPARE(plan.update, t.accelerator.sync_gradients());
    }
    QCOMPARE(told.join(", "), QStringLiteral("1 of 4, 2 of 4, 3 of 4, 4 of 4!, 1 of 4, 2 of 2!"));
  }

  void gradients_are_unscaled_once_whoever_asks() {
    TrainedLine t({.mixed_precision = MixedPrecision::fp16, .grad_scaler = {.init_scale = 1024.0}}, 0.5);
    const auto scope = t.accelerator.accumulate(t.model);
    t.accelerator.backward(t.model.loss(points({1.0})));  // d(w - 2)^2 at 0: -4
    QCOMPARE(t.model.gradient(), -4.0 * 1024.0);
    t.accelerator.unscale_gradients(&t.optimizer);
    QCOMPARE(t.model.gradient(), -4.0);
    QVERIFY(t.optimizer.step() == StepOutcome::updated);
    QCOMPARE(t.model.value(), 2.0);
  }

  void a_loader_goes_on_where_it_was_and_then_begins_anew() {
    const auto axis = single_communicator();
    Accelerator accelerator({}, *axis);
    auto loader = accelerator.prepare(value_loader(5, {.batch_size = 1}));
    loader.skip_first_batches(3);
    QCOMPARE(values_of(loader), QStringLiteral("4 5"));
    QCOMPARE(values_of(loader), QStringLiteral("1 2 3 4 5"));
  }

  void an_epochs_order_follows_its_number() {
    const auto axis = single_communicator();
    Accelerator accelerator({}, *axis);
    auto loader = accelerator.prepare(value_loader(40, {.batch_size = 1, .shuffle = true}));
    const auto read = [&loader](std::int64_t epoch) {
      loader.set_epoch(epoch);
      return values_of(loader);
    };
    const QString first = read(0);
    const QString second = read(1);
    QVERIFY(first != second);
    QCOMPARE(read(0), first);
    QCOMPARE(read(1), second);
  }

  void the_rates_are_printed_one_a_group() {
    const auto axis = single_communicator();
    OriginLine one;
    OriginLine two;
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

  void several_objects_are_prepared_in_one_call() {
    const auto axis = single_communicator();
    torch::nn::Linear model(1, 1);
    torch::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(0.5));
    const auto decay = std::make_shared<LambdaLR>(sgd, [](std::int64_t n) { return 1.0 / static_cast<double>(n + 1); });
    Accelerator accelerator({.gradient_accumulation_steps = 2}, *axis);
    auto [ddp, optimizer, loader, schedule] =
        accelerator.prepare(model, sgd, value_loader(4, {.batch_size = 1}), decay);
    static_assert(std::is_same_v<decltype(ddp), DistributedDataParallel&>);
    QCOMPARE(ddp.parameters().size(), std::size_t{2});
    int updates = 0;
    for (const at::Tensor& x : loader) {
      const auto scope = accelerator.accumulate(model);
      accelerator.backward(model(x.to(at::kFloat).reshape({1, 1})).sum());
      updates += optimizer.step() == StepOutcome::updated;
      schedule.step();
      optimizer.zero_grad();
    }
    QCOMPARE(updates, 2);
    QCOMPARE(schedule.position(), std::int64_t{2});
  }

  void an_optimizer_is_prepared_once() {
    TrainedLine t({});
    QVERIFY_EXCEPTION_THROWN(t.accelerator.prepare(t.sgd), std::invalid_argument);
    QVERIFY_EXCEPTION_THROWN(t.accelerator.prepare(t.optimizer.torch()), std::invalid_argument);
  }

  /// The meta device represents any other device: moved tensors report it.
  void batches_go_to_the_device_unless_told_otherwise() {
    const auto axis = single_communicator();
    for (const bool placement : {true, false}) {
      Accelerator accelerator({.device = at::kMeta, .device_placement = placement}, *axis);
      QVERIFY(accelerator.device() == at::kMeta);
      auto tensors = accelerator.prepare(value_loader(2, {}));
      QCOMPARE((*tensors.begin()).is_meta(), placement);
      auto pairs = accelerator.prepare(map_loader(2, [](const std::vector<std::int64_t>&) {
        return std::pair(std::vector<at::Tensor>{points({1.0})}, points({2.0}));
      }));
      auto batch = pairs.begin();
      QCOMPARE(batch->first.front().is_meta() && batch->second.is_meta(), placement);
    }
  }

  void a_seed_makes_random_numbers_come_again() {
    const auto axis = single_communicator();
    const Accelerator accelerator({}, *axis);
    accelerator.set_seed(7);
    const at::Tensor first = at::rand({3});
    accelerator.set_seed(7, /*device_specific=*/true);  // rank 0 adds nothing
    QVERIFY(at::equal(first, at::rand({3})));
    accelerator.set_seed(8);
    QVERIFY(!at::equal(first, at::rand({3})));
  }

  void operators_run_in_bfloat16_where_the_forward_asks_for_it() {
    const auto axis = single_communicator();
    torch::nn::Linear model(2, 2);
    Accelerator accelerator({.mixed_precision = MixedPrecision::bf16}, *axis);
    accelerator.prepare(model);
    at::Tensor out;
    {
      const auto precision = accelerator.autocast();
      out = model(at::ones({1, 2}));
    }
    QCOMPARE(out.scalar_type(), at::kBFloat16);
    accelerator.backward(out.sum());
    QCOMPARE(model->weight.grad().scalar_type(), at::kFloat);
    QVERIFY(accelerator.scaler() == nullptr);
    QVERIFY(Accelerator({}, *axis).autocast() == nullptr);
  }

  /// As the original: off a boundary the closure is not called, on one the inner optimizer calls it.
  void a_closure_reaches_the_inner_optimizer_on_a_boundary() {
    TrainedLine t({.gradient_accumulation_steps = 2});
    int calls = 0;
    for (int m = 0; m < 4; ++m) {
      const auto scope = t.accelerator.accumulate(t.model);
      const at::Tensor loss = t.model.loss(points({1.0}));
      t.accelerator.backward(loss);
      t.optimizer.step([&] {
        ++calls;
        return loss;
      });
      t.optimizer.zero_grad();
    }
    QCOMPARE(calls, 2);
  }

  void a_loader_may_outlive_its_accelerator() {
    const auto axis = single_communicator();
    auto accelerator = std::make_unique<Accelerator>(AcceleratorOptions{}, *axis);
    auto loader = accelerator->prepare(value_loader(3, {}));
    auto at = loader.begin();
    accelerator.reset();
    ++at;
    QCOMPARE((*at).item<double>(), 2.0);
    double sum = 0.0;
    for (const at::Tensor& x : loader) sum += x.item<double>();
    QCOMPARE(sum, 6.0);
  }

  void nothing_is_handed_out_twice() {
    const auto axis = single_communicator();
    Accelerator accelerator({}, *axis);
    auto loader = accelerator.prepare(value_loader(2, {}));
    auto at = loader.begin();
    ++at;
    ++at;
    QVERIFY(at == loader.end());
    QVERIFY_EXCEPTION_THROWN(*at, std::out_of_range);
    ++at;
    QVERIFY_EXCEPTION_THROWN(at->item<double>(), std::out_of_range);
  }

  void a_loader_leads_to_its_source() {
    const auto axis = single_communicator();
    Accelerator accelerator({}, *axis);
    std::vector<at::Tensor> batches{points({1.0}), points({2.0})};
    auto source = source_of(batches);
    auto loader = accelerator.prepare(source);
    QCOMPARE(loader.source(), static_cast<BatchSource<at::Tensor>*>(&source));
    QCOMPARE(loader.length(), std::optional<std::int64_t>(2));
    auto mapped = accelerator.prepare(value_loader(5, {.batch_size = 2}));
    QVERIFY(mapped.source() == nullptr);
    QCOMPARE(mapped.map().samples, std::int64_t{5});
  }

  void a_loader_says_where_it_is() {
    const auto axis = single_communicator();
    Accelerator accelerator({}, *axis);
    auto loader = accelerator.prepare(value_loader(5, {.batch_size = 2}));
    loader.set_epoch(4);
    auto at = loader.begin();
    ++at;
    std::ostringstream text;
    text << loader;
    QCOMPARE(text.str(), std::string("PreparedLoader: 3 batches an epoch; epoch 4, 2 handed out"));
  }
};

ACCRUE_TEST_MAIN(TestAccelerateCalls)

}  // namespace test_accelerate_calls
#include "test_accelerate_calls.moc"
