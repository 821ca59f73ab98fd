// SPDX-License-Identifier: Apache-2.0
// Loops that do not do everything through the Accelerator, on one rank: a plain backward, clears at every place, edits
// of gradients by hand, scopes that outlive what they are about.
#include <QtTest/QTest>

#include "support/accelerate_cases.h"
#include "support/test_program.h"

namespace test_accelerate_own_backward {

using namespace accrue;
using namespace accrue::test;

class TestAccelerateOwnBackward : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_plain_backward_accumulates_wherever_gradients_are_cleared_data() {
    QTest::addColumn<int>("clear");
    QTest::addColumn<bool>("gated");
    for (const bool gated : {false, true}) {
      QTest::addRow("after the step%s", gated ? ", gated" : "") << int(ClearAt::after_step) << gated;
      QTest::addRow("before the scope%s", gated ? ", gated" : "") << int(ClearAt::before_scope) << gated;
      QTest::addRow("before the backward%s", gated ? ", gated" : "") << int(ClearAt::before_backward) << gated;
    }
  }
  void a_plain_backward_accumulates_wherever_gradients_are_cleared() {
    QFETCH(int, clear);
    QFETCH(bool, gated);
    const double w = run_eight_points({.clear = ClearAt(clear), .own_backward = true, .step_on_boundary_only = gated});
    QVERIFY2(std::abs(w - 2.04) < 1e-12, qPrintable(QString::number(w, 'g', 17)));
  }

  void replay_loses_the_group_of_a_plain_backward_too() {
    const double w = run_eight_points(
        {.clear = ClearAt::before_backward, .replay = {.zero_before_backward = true}, .own_backward = true});
    QVERIFY2(std::abs(w - 1.13) < 1e-12, qPrintable(QString::number(w, 'g', 17)));
  }

  void a_boundary_whose_gradients_are_cleared_without_a_step_is_given_up() {
    const auto axis = single_communicator();
    Line model;
    torch::optim::SGD sgd(model.parameters(), torch::optim::SGDOptions(0.02));
    Accelerator accelerator({.gradient_accumulation_steps = 2}, *axis);
    accelerator.prepare(model);
    auto& optimizer = accelerator.prepare(sgd);
    for (int m = 1; m <= 2; ++m) {
      const auto scope = accelerator.accumulate(model);
      model.loss(points({1.0})).backward();
      optimizer.zero_grad();
      QCOMPARE(model.gradient(), m == 1 ? -4.0 : 0.0);
    }
  }

  void gradients_made_by_hand_belong_to_the_group() {
    const auto axis = single_communicator();
    Line model;
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

ACCRUE_TEST_MAIN(TestAccelerateOwnBackward)

}  // namespace test_accelerate_own_backward
#include "test_accelerate_own_backward.moc"
