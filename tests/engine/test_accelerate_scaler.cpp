// SPDX-License-Identifier: Apache-2.0
// One loss scale, two optimizers that step at different times: whatever the loop does between a step and the next
// backward, gradients of two scales are never added up, so a run with fp16's scaling gives the parameters of one
// without, bit for bit, while its scale moves all the time.
#include <QTest>

#include "support/accelerate_cases.h"
#include "support/test_program.h"

namespace test_accelerate_scaler {

using namespace accrue;
using namespace accrue::test;

namespace {

enum class Loop {
  critic,           ///< a each round, b every second one, each with its own loss and clip
  critic_clip_all,  ///< the same, and every clip is about both
  one_loss,         ///< one loss of both each round, b steps every second time
  groups,           ///< N = 2, each with its own loss
  never_cleared,    ///< gradients go on piling up after a step
};

struct Trained {
  double a = 0.0;
  double b = 0.0;
  double scale = 0.0;
};

struct Pair : TwoLines {
  Pair(bool fp16, std::int64_t steps)
      : TwoLines({.gradient_accumulation_steps = steps,
                  .mixed_precision = fp16 ? MixedPrecision::fp16 : MixedPrecision::no,
                  .grad_scaler = {.init_scale = 1024.0, .growth_interval = 1}},
                 0.01, 0.5) {}
  Trained result() {
    GradScaler* scaler = accelerator.scaler();
    return {a.value(), b.value(), scaler != nullptr ? scaler->get_scale() : 0.0};
  }
};

at::Tensor sample(int round) {
  return points({1.0 + round % 3});
}

Trained run_critic(bool fp16, bool clip_all, double first_factor = 1.0) {
  Pair two(fp16, 1);
  const auto update = [&](OriginLine& line, AcceleratedOptimizer& optimizer, const at::Tensor& loss) {
    two.accelerator.backward(loss);
    std::vector<at::Tensor> clipped = {line.w};
    if (clip_all) clipped = {two.a.w, two.b.w};
    two.accelerator.clip_grad_norm_(clipped, 1.0);
    optimizer.step();
    optimizer.zero_grad();
  };
  for (int round = 0; round < 8; ++round) {
    update(two.a, two.step_a, two.a.loss(sample(round)) * (round == 0 ? first_factor : 1.0));
    if (round % 2 == 1) update(two.b, two.step_b, two.b.loss(sample(round)));
  }
  return two.result();
}

Trained run_one_loss(bool fp16, bool clear) {
  Pair two(fp16, 1);
  for (int round = 0; round < 8; ++round) {
    two.accelerator.backward(two.a.loss(sample(round)) + two.b.loss(sample(round)));
    two.accelerator.clip_grad_norm_({two.a.w, two.b.w}, 3.0);
    two.step_a.step();
    if (clear) two.step_a.zero_grad();
    if (round % 2 == 0) continue;
    two.step_b.step();
    if (clear) two.step_b.zero_grad();
  }
  return two.result();
}

Trained run_groups(bool fp16) {
  Pair two(fp16, 2);
  for (int round = 0; round < 8; ++round) {
    const auto scope = two.accelerator.accumulate(two.a, two.b);
    two.accelerator.backward(two.a.loss(sample(round)));
    two.step_a.step();
    two.step_a.zero_grad();
    two.accelerator.backward(two.b.loss(sample(round)));
    two.step_b.step();
    two.step_b.zero_grad();
  }
  return two.result();
}

Trained run(Loop loop, bool fp16) {
  switch (loop) {
    case Loop::critic:
      return run_critic(fp16, false);
    case Loop::critic_clip_all:
      return run_critic(fp16, true);
    case Loop::one_loss:
      return run_one_loss(fp16, true);
    case Loop::groups:
      return run_groups(fp16);
    case Loop::never_cleared:
      return run_one_loss(fp16, false);
  }
  return {};
}

}  // namespace

class TestAccelerateScaler : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_scale_moves_and_the_parameters_do_not_notice_data() {
    QTest::addColumn<int>("loop");
    QTest::addColumn<double>("scale");
    QTest::newRow("a critic each round") << int(Loop::critic) << 1024.0 * std::pow(2.0, 12);
    QTest::newRow("clips of both") << int(Loop::critic_clip_all) << 1024.0 * std::pow(2.0, 12);
    QTest::newRow("one loss, two rhythms") << int(Loop::one_loss) << 1024.0 * std::pow(2.0, 8);
    QTest::newRow("groups of two") << int(Loop::groups) << 1024.0 * std::pow(2.0, 8);
    QTest::newRow("never cleared") << int(Loop::never_cleared) << 1024.0 * std::pow(2.0, 8);
  }
  void the_scale_moves_and_the_parameters_do_not_notice() {
    QFETCH(int, loop);
    QFETCH(double, scale);
    const Trained plain = run(Loop(loop), false);
    const Trained scaled = run(Loop(loop), true);
    QVERIFY(plain.a != 0.0 && plain.b != 0.0);
    QCOMPARE(scaled.a, plain.a);
    QCOMPARE(scaled.b, plain.b);
    QCOMPARE(scaled.scale, scale);
  }

  void an_overflow_of_the_critic_backs_off_while_the_other_waits() {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const bool clip_all : {false, true}) {
      const Trained got = run_critic(true, clip_all, infinity);
      QCOMPARE(got.scale, 1024.0 * std::pow(2.0, 10));  // 11 updates that were taken, one that was not
      QVERIFY(std::isfinite(got.a) && std::isfinite(got.b));
    }
  }
};

ACCRUE_TEST_MAIN(TestAccelerateScaler)

}  // namespace test_accelerate_scaler
#include "test_accelerate_scaler.moc"
