// SPDX-License-Identifier: Apache-2.0
// The loss scaler by itself: what an overflow costs (one step, nothing else), how the scale follows, what it refuses.
#include <ATen/ATen.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <QTest>
#include <limits>

#include "accrue/accumulation/grad_scaler.h"
#include "accrue/update/dynamic_scale.h"
#include "support/refusals.h"
#include "support/test_program.h"

namespace test_grad_scaler {

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// One parameter under Adam, and a loss whose gradient is `slope` for every element.
struct Learner {
  explicit Learner(at::ScalarType type = at::kFloat) {
    weight = at::full({3}, 0.5, type).requires_grad_();
    adam = std::make_unique<torch::optim::Adam>(std::vector<at::Tensor>{weight}, torch::optim::AdamOptions(0.1));
    optimizer = wrap(*adam);
  }
  at::Tensor loss(double slope) { return (weight * slope).sum(); }
  /// One update: the gradients are new, whatever became of the last ones.
  StepOutcome train(GradScaler& scaler, double slope) {
    optimizer->zero_grad();
    optimizer->backward(scaler.scale(loss(slope)));
    const StepOutcome outcome = scaler.step(*optimizer);
    scaler.update();
    return outcome;
  }
  const torch::optim::AdamParamState& moments() const {
    return static_cast<const torch::optim::AdamParamState&>(*adam->state().at(weight.unsafeGetTensorImpl()));
  }
  at::Tensor weight;
  std::unique_ptr<torch::optim::Adam> adam;
  std::shared_ptr<BaseOptimizer> optimizer;
};

class TestGradScaler : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void overflows_are_borne_before_the_scale_falls_and_never_again_until_it_grows() {
    DynamicScale scale{.scale = 8.0, .growth_interval = 1000, .lowest = 1.0, .hysteresis = 2};
    std::vector<double> after;
    const auto overflow = [&] { scale.overflowed(), after.push_back(scale.scale); };
    const auto steps = [&](int count) {
      while (count-- > 0) scale.stepped();
      after.push_back(scale.scale);
    };
    for (int i = 0; i < 3; ++i) overflow();
    steps(999);
    steps(1);
    QCOMPARE(after, (std::vector<double>{8, 4, 2, 2, 4}));
    after.clear();
    overflow();  // borne again, since the scale has grown
    steps(500);
    overflow();
    steps(999);  // counted from the overflow
    for (int i = 0; i < 3; ++i) overflow();
    QCOMPARE(after, (std::vector<double>{4, 4, 2, 2, 1, 1, 1}));  // no lower than the lowest
  }

  void says_what_became_of_each_step() {
    Learner learner;
    GradScaler scaler({.init_scale = 8.0});
    QCOMPARE(learner.train(scaler, 1.0), StepOutcome::updated);
    QCOMPARE(scaler.get_scale(), 8.0);
    QCOMPARE(learner.train(scaler, infinity), StepOutcome::skipped_overflow);
    QCOMPARE(scaler.get_scale(), 4.0);
    QCOMPARE(learner.train(scaler, std::numeric_limits<double>::quiet_NaN()), StepOutcome::skipped_overflow);
    QCOMPARE(scaler.get_scale(), 2.0);
    QCOMPARE(learner.train(scaler, 1.0), StepOutcome::updated);
    QCOMPARE(scaler.get_scale(), 2.0);
  }

  void unscales_to_the_gradient_that_the_loss_has() {
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16}) {
      Learner learner(type);
      GradScaler scaler({.init_scale = 1024.0});
      learner.optimizer->backward(scaler.scale(learner.loss(0.75)));
      QCOMPARE(learner.weight.grad()[0].item<double>(), 768.0);
      scaler.unscale_(*learner.optimizer);
      QCOMPARE(learner.weight.grad()[0].item<double>(), 0.75);
    }
  }

  void keeps_float64_gradients_whole_under_any_scale() {
    Learner learner(at::kDouble);
    GradScaler scaler({.init_scale = 3.0});
    learner.optimizer->backward(scaler.scale(learner.loss(0.1)));
    scaler.unscale_(*learner.optimizer);
    QVERIFY(std::abs(learner.weight.grad()[0].item<double>() - 0.1) < 1e-15);
  }

  void treats_parameters_of_several_dtypes_together() {
    at::Tensor half = at::ones({2}, at::kHalf).requires_grad_();
    at::Tensor single = at::ones({2}, at::kFloat).requires_grad_();
    torch::optim::SGD sgd(std::vector<at::Tensor>{half, single}, torch::optim::SGDOptions(0.5));
    const auto optimizer = wrap(sgd);
    GradScaler scaler({.init_scale = 4.0});
    // 4 * 30000 is more than a half can hold; the other parameter's gradient is well.
    optimizer->backward(scaler.scale((half * 30000.0).sum().to(at::kFloat) + single.sum()));
    QCOMPARE(scaler.step(*optimizer), StepOutcome::skipped_overflow);
    QVERIFY(at::equal(half.detach(), at::ones({2}, at::kHalf)) && at::equal(single.detach(), at::ones({2})));
  }

  void leaves_adams_moments_alone_on_a_skip() {
    Learner learner;
    GradScaler scaler;
    QCOMPARE(learner.train(scaler, 1.0), StepOutcome::updated);
    const at::Tensor weight = learner.weight.detach().clone();
    const at::Tensor first = learner.moments().exp_avg().clone(), second = learner.moments().exp_avg_sq().clone();
    QCOMPARE(learner.train(scaler, infinity), StepOutcome::skipped_overflow);
    QVERIFY(at::equal(learner.weight.detach(), weight));
    QVERIFY(at::equal(learner.moments().exp_avg(), first) && at::equal(learner.moments().exp_avg_sq(), second));
    QCOMPARE(learner.moments().step(), 1);
  }

  void grows_after_enough_updates_without_an_overflow() {
    Learner learner;
    GradScaler scaler({.init_scale = 16.0, .growth_factor = 4.0, .backoff_factor = 0.25, .growth_interval = 3});
    for (const double expected : {16.0, 16.0, 64.0, 64.0, 64.0}) {
      learner.train(scaler, 1.0);
      QCOMPARE(scaler.get_scale(), expected);
    }
    learner.train(scaler, infinity);  // starts the count anew
    QCOMPARE(scaler.get_scale(), 16.0);
    for (const double expected : {16.0, 16.0, 64.0}) {
      learner.train(scaler, 1.0);
      QCOMPARE(scaler.get_scale(), expected);
    }
  }

  void stays_within_what_a_float_can_hold() {
    Learner learner(at::kDouble);
    GradScaler large({.init_scale = 0x1p126, .growth_interval = 1});
    for (int update = 0; update < 4; ++update) QCOMPARE(learner.train(large, 1.0), StepOutcome::updated);
    QCOMPARE(large.get_scale(), 0x1p126);
    GradScaler small({.init_scale = 0x1p-125});
    for (int update = 0; update < 4; ++update) learner.train(small, infinity);
    QCOMPARE(small.get_scale(), 0x1p-126);
  }

  void keeps_a_scale_that_is_set_by_hand() {
    Learner learner;
    GradScaler scaler({.init_scale = 4.0, .growth_interval = 1});
    for (const double slope : {1.0, infinity}) {
      learner.optimizer->zero_grad();
      learner.optimizer->backward(scaler.scale(learner.loss(slope)));
      scaler.step(*learner.optimizer);
      scaler.update(32.0);
      QCOMPARE(scaler.get_scale(), 32.0);
    }
  }

  void refuses_to_divide_twice() {
    Learner learner;
    GradScaler scaler({.init_scale = 4.0});
    learner.optimizer->backward(scaler.scale(learner.loss(1.0)));
    scaler.unscale_(*learner.optimizer);
    QVERIFY(thrown_by<std::logic_error>([&] { scaler.unscale_(*learner.optimizer); }).contains("unscale_()"));
    QCOMPARE(learner.weight.grad()[0].item<double>(), 1.0);
    QCOMPARE(scaler.step(*learner.optimizer), StepOutcome::updated);
    QVERIFY(thrown_by<std::logic_error>([&] { scaler.step(*learner.optimizer); }).contains("step()"));
    scaler.update();
    QVERIFY(thrown_by<std::logic_error>([&] { scaler.update(); }).contains("update()"));
    QCOMPARE(learner.train(scaler, 1.0), StepOutcome::updated);
  }

  void backs_off_once_where_any_of_several_optimizers_overflowed() {
    Learner well, ill;
    GradScaler scaler({.init_scale = 4.0});
    well.optimizer->backward(scaler.scale(well.loss(1.0)));
    ill.optimizer->backward(scaler.scale(ill.loss(infinity)));
    QCOMPARE(scaler.step(*ill.optimizer), StepOutcome::skipped_overflow);
    QCOMPARE(scaler.step(*well.optimizer), StepOutcome::updated);
    scaler.update();
    QCOMPARE(scaler.get_scale(), 2.0);
  }

  void calls_a_step_without_gradients_empty() {
    Learner learner;
    GradScaler scaler({.init_scale = 4.0});
    QCOMPARE(scaler.step(*learner.optimizer), StepOutcome::skipped_empty);
    scaler.update();
    QCOMPARE(scaler.get_scale(), 4.0);
  }

  void adds_up_a_sparse_gradient_before_it_looks() {
    at::Tensor table = at::zeros({4, 1}, at::kFloat).requires_grad_();
    torch::optim::SGD sgd(std::vector<at::Tensor>{table}, torch::optim::SGDOptions(1.0));
    const auto optimizer = wrap(sgd);
    const at::Tensor rows = at::tensor({1, 1}, at::kLong).unsqueeze(0);
    const float most = std::numeric_limits<float>::max();
    table.mutable_grad() = at::sparse_coo_tensor(rows, at::full({2, 1}, most), {4, 1});
    GradScaler scaler({.init_scale = 1.0});
    QCOMPARE(scaler.step(*optimizer), StepOutcome::skipped_overflow);
  }

  void carries_its_state_over() {
    Learner learner;
    GradScaler before({.init_scale = 16.0, .growth_interval = 3});
    learner.train(before, infinity);
    learner.train(before, 1.0);
    GradScaler after;
    after.load_state_dict(before.state_dict());
    QCOMPARE(after.get_scale(), 8.0);
    for (const double expected : {8.0, 16.0}) {  // the count towards growth continues too
      learner.train(before, 1.0);
      learner.train(after, 1.0);
      QCOMPARE(before.get_scale(), expected);
      QCOMPARE(after.get_scale(), expected);
    }
    StateDict broken = before.state_dict();
    broken.erase("growth_tracker");
    broken["scale"] = state_number(99.0);
    QVERIFY(thrown_by<std::invalid_argument>([&] { after.load_state_dict(broken); }).contains("growth_tracker"));
    QCOMPARE(after.get_scale(), 16.0);
  }

  void does_nothing_where_it_is_disabled() {
    Learner learner(at::kDouble);
    GradScaler scaler({.enabled = false});
    QCOMPARE(scaler.get_scale(), 1.0);
    QVERIFY(scaler.state_dict().empty());
    learner.optimizer->backward(scaler.scale(learner.loss(2.0)));
    scaler.unscale_(*learner.optimizer);
    scaler.unscale_(*learner.optimizer);
    QCOMPARE(learner.weight.grad()[0].item<double>(), 2.0);
    QCOMPARE(scaler.step(*learner.optimizer), StepOutcome::updated);
    scaler.update();
    QCOMPARE(learner.train(scaler, infinity), StepOutcome::updated);  // as any optimizer without a scaler does
  }

  void refuses_factors_that_lead_nowhere() {
    QVERIFY(!thrown_by<std::invalid_argument>([] { GradScaler({.init_scale = 0.0}); }).isEmpty());
    QVERIFY(!thrown_by<std::invalid_argument>([] { GradScaler({.growth_factor = 1.0}); }).isEmpty());
    QVERIFY(!thrown_by<std::invalid_argument>([] { GradScaler({.backoff_factor = 1.0}); }).isEmpty());
    QVERIFY(!thrown_by<std::invalid_argument>([] { GradScaler({.growth_interval = 0}); }).isEmpty());
  }
};

}  // namespace

ACCRUE_TEST_MAIN(TestGradScaler)

}  // namespace test_grad_scaler
#include "test_grad_scaler.moc"
