// SPDX-License-Identifier: Apache-2.0
// Shares of two losses, each with its own count, in a window's gradient. Expected values are derived by hand.
#include <ATen/ops/ones.h>
#include <QTest>

#include <cmath>
#include <vector>

#include "support/test_program.h"
#include "train/loss_scaling.h"

namespace test_loss_scaling {

using namespace accrue;

class TestLossScaling : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// Two micro-steps of one sample each, with 2 and 6 items: what each sample's second loss is multiplied by.
  void the_second_loss_is_a_mean_over_samples_data() {
    QTest::addColumn<Normalizer>("normalizer");
    QTest::addColumn<NormalizeWhen>("when");
    // Of two samples each counts a half, whatever the first loss is divided by.
    QTest::newRow("samples, eager") << Normalizer::samples << NormalizeWhen::eager;
    QTest::newRow("samples, deferred") << Normalizer::samples << NormalizeWhen::deferred;
    QTest::newRow("tokens, eager") << Normalizer::tokens << NormalizeWhen::eager;
    QTest::newRow("tokens, deferred") << Normalizer::tokens << NormalizeWhen::deferred;
  }
  void the_second_loss_is_a_mean_over_samples() {
    QFETCH(Normalizer, normalizer);
    QFETCH(NormalizeWhen, when);
    AccumulationKnobs knobs;
    knobs.normalizer = normalizer;
    knobs.normalize_when = when;
    const LossScaling scaling(knobs, Bug::none, 1);
    MicroPlan plan;
    plan.division.by = normalizer == Normalizer::samples ? Division::By::samples : Division::By::items;
    const WindowCounts window{.items = 8, .samples = 2};
    for (const std::int64_t items : {2, 6}) {
      LossSum loss{at::ones({}), items};
      loss.second = at::ones({});
      loss.second_count = 1;
      const double weight = scaling.weight(plan, {.items = items, .samples = 1}, window);
      const double share = weight * scaling.share_of_second(loss, window) * scaling.factor(plan, window);
      QVERIFY2(std::abs(share - 0.5) < 1e-12, qPrintable(QString::number(share)));
    }
  }

  /// Two samples without a masked token: the second loss alone is left, and each counts a half.
  void samples_without_an_item_count() {
    const WindowCounts window = divisor_of({.items = 0, .samples = 2}, true);
    QCOMPARE(window.items, std::int64_t{1});
    QCOMPARE(divisor_of({.items = 0, .samples = 2}, false).items, std::int64_t{0});
    QCOMPARE(divisor_of({.items = 0, .samples = 0}, true).items, std::int64_t{0});
    AccumulationKnobs knobs;
    knobs.normalizer = Normalizer::tokens;
    knobs.normalize_when = NormalizeWhen::deferred;
    const LossScaling scaling(knobs, Bug::none, 1);
    MicroPlan plan;
    plan.division.by = Division::By::items;
    LossSum loss{at::ones({}), 0};
    loss.second = at::ones({});
    loss.second_count = 1;
    const double weight = scaling.weight(plan, {.items = items_of(loss), .samples = 1}, window);
    QCOMPARE(weight * scaling.share_of_second(loss, window) * scaling.factor(plan, window), 0.5);
  }
};

ACCRUE_TEST_MAIN(TestLossScaling)

}  // namespace test_loss_scaling
#include "test_loss_scaling.moc"
