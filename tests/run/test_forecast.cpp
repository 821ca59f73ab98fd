// SPDX-License-Identifier: Apache-2.0
#include <QTest>
#include <vector>

#include "accrue/run/plan/forecast.h"
#include "support/test_program.h"

namespace test_forecast {

using namespace accrue;

namespace {

RunSpec spec_of(std::int64_t micro, std::int64_t steps) {
  RunSpec spec;
  spec.accumulation.micro_batch = micro;
  spec.accumulation.steps = steps;
  return spec;
}

}  // namespace

class TestForecast : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void nothing_is_predicted_before_a_first_run() {
    QVERIFY(!forecast_time(spec_of(4, 4), 1000, {}));
    // Neither from another model, nor from a run that ended before it trained.
    std::vector<EarlierRun> earlier = {{"other", spec_of(4, 4), 10.0, 1000}, {"empty", spec_of(4, 4), 0.0, 0}};
    earlier[0].spec.model.width *= 2;
    QVERIFY(!forecast_time(spec_of(4, 4), 1000, earlier));
  }

  void the_nearest_run_counts() {
    // By hand: 10 s for 1000 samples are 20 s for 2000.
    const std::vector<EarlierRun> earlier = {{"other micro-batch", spec_of(8, 2), 4.0, 1000},
                                             {"other N", spec_of(4, 8), 8.0, 1000},
                                             {"same, newest", spec_of(4, 4), 10.0, 1000},
                                             {"same, older", spec_of(4, 4), 30.0, 1000}};
    const auto same = forecast_time(spec_of(4, 4), 2000, earlier);
    QVERIFY(same);
    QCOMPARE(same->seconds, 20.0);
    QCOMPARE(same->from, std::string("same, newest"));
    QVERIFY(same->same_micro_batch);
    QCOMPARE(forecast_time(spec_of(4, 2), 2000, earlier)->from, std::string("other N"));
    const auto scaled = forecast_time(spec_of(1, 1), 500, earlier);
    QCOMPARE(scaled->from, std::string("other micro-batch"));
    QCOMPARE(scaled->seconds, 2.0);
    QVERIFY(!scaled->same_micro_batch);
  }

  void a_rank_holds_the_same_only_with_the_same_optimizer_and_window() {
    RunSpec other = spec_of(4, 4);
    other.run.updates = 7;
    other.optimizer.lr *= 2;
    QVERIFY(holds_alike(spec_of(4, 4), other));
    QVERIFY(!holds_alike(spec_of(4, 4), spec_of(2, 8)));
    QVERIFY(trains_alike(spec_of(4, 4), spec_of(2, 8)));
    other.optimizer.kind = OptimizerKind::sgd;
    QVERIFY(!holds_alike(spec_of(4, 4), other));
  }

  void what_a_librarys_model_costs_is_not_known() {
    RunSpec spec = spec_of(4, 4);
    QVERIFY(cost_is_known(spec));
    spec.megatron.custom_loss_function = "own";
    QVERIFY(cost_is_known(spec));
    spec.megatron.custom_model_provider_function = "resnet";
    QVERIFY(!cost_is_known(spec));
  }

  void a_librarys_model_trains_like_itself_alone() {
    RunSpec resnet = spec_of(4, 4);
    resnet.megatron.custom_model_provider_function = "resnet";
    RunSpec vgg = resnet;
    vgg.megatron.custom_model_provider_function = "vgg";
    QVERIFY(trains_alike(resnet, resnet));
    QVERIFY(!trains_alike(resnet, vgg));
    QVERIFY(!trains_alike(resnet, spec_of(4, 4)));
  }
};

ACCRUE_TEST_MAIN(TestForecast)

}  // namespace test_forecast
#include "test_forecast.moc"
