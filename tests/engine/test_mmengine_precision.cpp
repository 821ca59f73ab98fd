// SPDX-License-Identifier: Apache-2.0
// Treatment of gradients by MMEngine's wrappers before a step, once per group: clipping, and loss scaling with its
// check for overflow.
#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <QTest>
#include <limits>

#include "accrue/accumulation/mmengine/amp_optim_wrapper.h"
#include "support/counted_sync.h"
#include "support/refusals.h"
#include "support/ten_batches.h"
#include "support/test_program.h"

namespace test_mmengine_precision {

using namespace accrue;
using namespace accrue::mmengine;
using namespace accrue::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

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

class TestMmenginePrecision : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // --- clipping -----------------------------------------------------------------------------------------------------

  void clips_the_windows_sum_once_inside_the_step() {
    at::Tensor weight = at::zeros({2}, at::kDouble).requires_grad_();
    torch::optim::SGD sgd({weight}, torch::optim::SGDOptions(1.0));
    OptimWrapper wrapper(sgd, {.accumulative_counts = 2, .clip_grad = ClipGrad{.max_norm = 1.0}});
    const at::Tensor slope = at::tensor({6.0, 8.0}, at::kDouble);
    wrapper.update_params((weight * slope).sum());
    QVERIFY(at::equal(weight.grad(), slope / 2.0));
    QVERIFY(!wrapper.grad_norm());
    wrapper.update_params((weight * slope).sum());
    QCOMPARE(wrapper.grad_norm().value(), 10.0);
    ACCRUE_NEAR(weight.detach().norm().item<double>(), 10.0 / (10.0 + 1e-6));
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

  void refuses_a_bound_of_zero_and_on_request_a_norm_that_is_not_finite() {
    at::Tensor weight = at::zeros({2}, at::kDouble).requires_grad_();
    torch::optim::SGD sgd({weight}, torch::optim::SGDOptions(1.0));
    QVERIFY(
        thrown_by<std::invalid_argument>([&] { OptimWrapper(sgd, {.clip_grad = ClipGrad{}}); }).contains("max_norm"));
    OptimWrapper wrapper(sgd, {.clip_grad = ClipGrad{.max_norm = 1.0, .error_if_nonfinite = true}});
    QVERIFY(!thrown_by<std::runtime_error>([&] { wrapper.update_params((weight * infinity).sum()); }).isEmpty());
    QVERIFY(at::equal(weight.detach(), at::zeros({2}, at::kDouble)));
  }

  // --- mixed precision ----------------------------------------------------------------------------------------------

  void an_overflow_at_any_position_skips_exactly_its_window_data() {
    QTest::addColumn<int>("dtype");
    QTest::newRow("float64") << static_cast<int>(at::kDouble);
    QTest::newRow("float32") << static_cast<int>(at::kFloat);
    QTest::newRow("float16") << static_cast<int>(at::kHalf);
    QTest::newRow("bfloat16") << static_cast<int>(at::kBFloat16);
  }

  void an_overflow_at_any_position_skips_exactly_its_window() {
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
    ACCRUE_NEAR(weight.detach().norm().item<double>(), 10.0 / (10.0 + 1e-6));
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
    QVERIFY(state.contains("optimizer.group.0.parameters"));
    QVERIFY(state.contains("loss_scaler.scale"));
    ScaledRun fresh(at::kFloat);
    fresh.wrapper->load_state_dict(state);
    QCOMPARE(fresh.wrapper->loss_scaler().get_scale(), 512.0);
    QCOMPARE(fresh.wrapper->inner_count(), 0);
    QCOMPARE(fresh.moments().step(), 2);
    StateDict broken = state;
    broken.erase("optimizer.group.0.parameters");
    broken["loss_scaler.scale"] = state_number(4.0);
    QVERIFY(!thrown_by<std::invalid_argument>([&] { fresh.wrapper->load_state_dict(broken); }).isEmpty());
    QCOMPARE(fresh.wrapper->loss_scaler().get_scale(), 512.0);
    const StateDict without_scaler = run.wrapper->OptimWrapper::state_dict();
    for (const auto& [name, tensor] : without_scaler) QVERIFY2(name.starts_with("optimizer."), name.c_str());
    fresh.wrapper->load_state_dict(without_scaler);
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
};

}  // namespace

ACCRUE_TEST_MAIN(TestMmenginePrecision)

}  // namespace test_mmengine_precision
#include "test_mmengine_precision.moc"
