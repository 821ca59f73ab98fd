// SPDX-License-Identifier: Apache-2.0
// The flat optimizers against LibTorch's own, tensor by tensor, and the norm and clip factor against their definitions.
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <QTest>
#include <cmath>
#include <limits>

#include "accrue/optim/flat_optimizer.h"

using namespace accrue;

namespace {

constexpr std::int64_t decayed = 1003, plain = 77, padding = 8, numel = decayed + plain + padding;
constexpr int steps = 50;

std::vector<FlatSegment> segments() {
  return {{{0, decayed}, 0.1}, {{decayed, plain}, 0.0}};
}

/// Two parameters whose gradients are drawn anew each step, updated both ways.
struct Twin {
  explicit Twin(at::ScalarType type) {
    at::manual_seed(7);
    flat = at::randn({numel}, type) * 0.25;  // weights below one: float32 rounds to 6e-8 or better
    first = flat.slice(0, 0, decayed).clone().requires_grad_();
    second = flat.slice(0, decayed, decayed + plain).clone().requires_grad_();
  }
  at::Tensor draw() {
    at::Tensor grads = at::randn({numel}, flat.options()) * 0.3;
    first.mutable_grad() = grads.slice(0, 0, decayed).clone();
    second.mutable_grad() = grads.slice(0, decayed, decayed + plain).clone();
    return grads;
  }
  double difference() const {
    const at::Tensor theirs = at::cat({first, second}).detach();
    return (flat.slice(0, 0, decayed + plain) - theirs).abs().max().item<double>();
  }
  at::Tensor flat, first, second;
};

template <typename Options>
std::vector<torch::optim::OptimizerParamGroup> groups(const Twin& twin, const Options& options) {
  auto decay = std::make_unique<Options>(options), none = std::make_unique<Options>(options);
  decay->weight_decay(0.1);
  none->weight_decay(0.0);
  std::vector<torch::optim::OptimizerParamGroup> list;
  list.emplace_back(std::vector<at::Tensor>{twin.first}, std::move(decay));
  list.emplace_back(std::vector<at::Tensor>{twin.second}, std::move(none));
  return list;
}

double follow(Twin& twin, FlatOptimizer& ours, torch::optim::Optimizer& theirs, double lr, double grad_scale) {
  double worst = 0.0;
  for (int step = 0; step < steps; ++step) {
    const at::Tensor grads = twin.draw();
    ours.step(twin.flat, grads / grad_scale, lr, grad_scale);
    theirs.step();
    worst = std::max(worst, twin.difference());
  }
  return worst;
}

}  // namespace

class TestOptimizers : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void adamw_follows_the_library_in_float32() { adamw(at::kFloat, 1e-6); }
  void adamw_follows_the_library_in_float64() { adamw(at::kDouble, 1e-12); }
  void sgd_follows_the_library_in_float32() { sgd(at::kFloat, 0.9, 1e-6); }
  void sgd_follows_the_library_in_float64() { sgd(at::kDouble, 0.9, 1e-12); }
  void sgd_without_momentum_follows_the_library() { sgd(at::kDouble, 0.0, 1e-12); }

  void grad_scale_is_folded_into_the_update() {
    Twin twin(at::kDouble);
    const OptimizerSpec spec{.kind = OptimizerKind::adamw, .lr = 1e-2};
    auto ours = make_flat_optimizer(spec, segments(), numel, at::kDouble);
    const torch::optim::AdamWOptions options(1e-2);
    torch::optim::AdamW theirs(groups(twin, options), options);
    QVERIFY(follow(twin, *ours, theirs, 1e-2, 0.125) < 1e-12);
  }

  void a_parameter_without_a_gradient_is_left_alone_data() {
    QTest::addColumn<bool>("adamw");
    QTest::newRow("adamw") << true;
    QTest::newRow("sgd with momentum") << false;
  }
  void a_parameter_without_a_gradient_is_left_alone() {
    QFETCH(bool, adamw);
    Twin twin(at::kDouble);
    const OptimizerSpec spec{
        .kind = adamw ? OptimizerKind::adamw : OptimizerKind::sgd, .lr = 1e-2, .momentum = adamw ? 0.0 : 0.9};
    auto ours = make_flat_optimizer(spec, segments(), numel, at::kDouble);
    std::unique_ptr<torch::optim::Optimizer> theirs;
    const torch::optim::AdamWOptions adamw_options(1e-2);
    const auto sgd_options = torch::optim::SGDOptions(1e-2).momentum(0.9);
    if (adamw)
      theirs = std::make_unique<torch::optim::AdamW>(groups(twin, adamw_options), adamw_options);
    else
      theirs = std::make_unique<torch::optim::SGD>(groups(twin, sgd_options), sgd_options);
    // The first parameter misses every other update, the second one the first two: moments and bias corrections count
    // each parameter's own updates.
    for (int step = 0; step < steps; ++step) {
      const at::Tensor grads = twin.draw();
      std::vector<FlatRange> unreached;
      if (step % 2 == 1) {
        unreached.push_back({0, decayed});
        twin.first.mutable_grad().reset();
      }
      if (step < 2) {
        unreached.push_back({decayed, plain});
        twin.second.mutable_grad().reset();
      }
      ours->step(twin.flat, grads, 1e-2, 1.0, unreached);
      theirs->step();
      QVERIFY2(twin.difference() < 1e-12, qPrintable(QStringLiteral("after step %1").arg(step + 1)));
    }
  }

  void gradients_and_padding_are_left_alone() {
    at::Tensor params = at::ones({numel}), grads = at::full({numel}, 0.5);
    auto ours = make_flat_optimizer({.kind = OptimizerKind::adamw}, segments(), numel, at::kFloat);
    ours->step(params, grads, 0.1, 2.0);
    QVERIFY(grads.eq(0.5).all().item<bool>());
    QVERIFY(params.slice(0, decayed + plain).eq(1.0).all().item<bool>());
    QVERIFY(params.slice(0, 0, decayed + plain).lt(1.0).all().item<bool>());
  }

  void state_and_step_count_continue_a_run() {
    at::manual_seed(3);
    const OptimizerSpec spec{.kind = OptimizerKind::adamw};
    at::Tensor whole = at::randn({numel}), halves = whole.clone();
    const at::Tensor grads = at::randn({numel});
    auto one = make_flat_optimizer(spec, segments(), numel, at::kFloat);
    auto before = make_flat_optimizer(spec, segments(), numel, at::kFloat);
    auto after = make_flat_optimizer(spec, segments(), numel, at::kFloat);
    for (int step = 0; step < 6; ++step) one->step(whole, grads, 1e-2, 1.0);
    for (int step = 0; step < 3; ++step) before->step(halves, grads, 1e-2, 1.0);
    for (auto& [name, tensor] : after->state()) {
      for (const auto& [saved_name, saved] : before->state()) {
        if (saved_name == name) tensor.copy_(saved);
      }
    }
    after->set_steps(before->steps());
    for (int step = 0; step < 3; ++step) after->step(halves, grads, 1e-2, 1.0);
    QVERIFY(at::equal(whole, halves));
    QCOMPARE(after->steps(), std::int64_t{6});
  }

  void refuses_what_it_was_not_made_for() {
    auto ours = make_flat_optimizer({}, segments(), numel, at::kFloat);
    at::Tensor params = at::zeros({numel});
    QVERIFY_EXCEPTION_THROWN(ours->step(params, at::zeros({numel - 1}), 0.1, 1.0), std::invalid_argument);
    QVERIFY_EXCEPTION_THROWN(ours->step(params, at::zeros({numel}, at::kDouble), 0.1, 1.0), std::invalid_argument);
    QVERIFY_EXCEPTION_THROWN(make_flat_optimizer({}, {{{numel - 1, 2}, 0.0}}, numel, at::kFloat),
                             std::invalid_argument);
    QVERIFY_EXCEPTION_THROWN(make_flat_optimizer({}, segments(), numel, at::kBFloat16), std::invalid_argument);
  }

  void norm_is_accumulated_in_double() {
    at::manual_seed(1);
    const at::Tensor values = at::randn({300'001});
    const double exact = values.to(at::kDouble).norm().item<double>();
    QVERIFY(std::abs(flat_norm(values) / exact - 1.0) < 1e-13);
    QVERIFY(std::abs(flat_norm(values.to(at::kDouble)) / exact - 1.0) < 1e-13);
    // In float32 the square of 1e30 overflows; in double it does not.
    QVERIFY(std::abs(flat_norm(at::full({4}, 1e30)) / 2e30 - 1.0) < 1e-6);
    QCOMPARE(flat_norm(at::empty({0})), 0.0);
  }

  void non_finite_gradients_come_through_the_norm() {
    at::Tensor values = at::ones({70'000});
    values[69'999] = std::numeric_limits<double>::quiet_NaN();
    QVERIFY(std::isnan(flat_norm(values)));
    values[69'999] = std::numeric_limits<double>::infinity();
    QVERIFY(std::isinf(flat_norm(values)));
  }

  void clip_factor_is_that_of_clip_grad_norm() {
    QCOMPARE(clip_factor(10.0, 0.0), 1.0);
    QCOMPARE(clip_factor(0.5, 1.0), 1.0);
    QCOMPARE(clip_factor(4.0, 1.0), 1.0 / (4.0 + 1e-6));
    QVERIFY(std::isnan(clip_factor(std::numeric_limits<double>::quiet_NaN(), 1.0)));
    QCOMPARE(clip_factor(std::numeric_limits<double>::infinity(), 1.0), 0.0);
  }

 private:
  static void adamw(at::ScalarType type, double tolerance) {
    Twin twin(type);
    const OptimizerSpec spec{.kind = OptimizerKind::adamw, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8};
    auto ours = make_flat_optimizer(spec, segments(), numel, type);
    const auto options = torch::optim::AdamWOptions(1e-3).betas({0.9, 0.95});
    torch::optim::AdamW theirs(groups(twin, options), options);
    const double worst = follow(twin, *ours, theirs, 1e-3, 1.0);
    QVERIFY2(worst < tolerance, qPrintable(QString::number(worst)));
  }

  static void sgd(at::ScalarType type, double momentum, double tolerance) {
    Twin twin(type);
    auto ours = make_flat_optimizer({.kind = OptimizerKind::sgd, .momentum = momentum}, segments(), numel, type);
    const auto options = torch::optim::SGDOptions(1e-2).momentum(momentum);
    torch::optim::SGD theirs(groups(twin, options), options);
    const double worst = follow(twin, *ours, theirs, 1e-2, 1.0);
    QVERIFY2(worst < tolerance, qPrintable(QString::number(worst)));
  }
};

QTEST_GUILESS_MAIN(TestOptimizers)
#include "test_optimizers.moc"
