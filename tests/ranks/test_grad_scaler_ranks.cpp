// SPDX-License-Identifier: Apache-2.0
// The loss scaler over two ranks: what one of them finds, both act on.
#include <ATen/ATen.h>
#include <torch/optim/adam.h>

#include <QtTest/QTest>
#include <limits>

#include "accrue/accumulation/grad_scaler.h"
#include "support/joined_rank.h"
#include "support/rank_checks.h"

namespace test_grad_scaler_ranks {

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

/// Four updates; rank 1 alone has an infinity in the second, rank 0 alone in the third.
int train_with_overflows(RankContext& rank) {
  JoinedRank joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  at::Tensor weight = at::ones({4}, at::kFloat).requires_grad_();
  torch::optim::Adam adam({weight}, torch::optim::AdamOptions(0.1));
  const auto optimizer = wrap(adam);
  GradScaler scaler({.init_scale = 1024.0}, joined.data.get());
  const int ill_rank[] = {-1, 1, 0, -1};
  for (const int ill : ill_rank) {
    optimizer->zero_grad();
    const double slope = ill == rank.rank ? std::numeric_limits<double>::infinity() : 1.0;
    optimizer->backward(scaler.scale((weight * slope).sum()));
    const at::Tensor before = weight.detach().clone();
    const StepOutcome outcome = scaler.step(*optimizer);
    scaler.update();
    DEMAND((outcome == StepOutcome::skipped_overflow) == at::equal(before, weight.detach()));
    rank.report(std::string(to_string(outcome)) + " " + std::to_string(scaler.get_scale()));
  }
  DEMAND(static_cast<const torch::optim::AdamParamState&>(*adam.state().at(weight.unsafeGetTensorImpl())).step() == 2);
  DEMAND(joined.data->traffic().calls == 4 && joined.data->traffic().gradient_calls == 0);
  rank.report(fingerprint(weight));
  joined.data->barrier();
  return 0;
}

/// Rank 1 has no gradient at all: it takes part, and only a window without any gradient is empty.
int step_without_a_gradient(RankContext& rank) {
  JoinedRank joined = join_ranks(rank, BackendKind::automatic);
  at::Tensor weight = at::ones({4}, at::kFloat).requires_grad_();
  torch::optim::Adam adam({weight}, torch::optim::AdamOptions(0.1));
  const auto optimizer = wrap(adam);
  GradScaler scaler({}, joined.data.get());
  DEMAND(scaler.step(*optimizer) == StepOutcome::skipped_empty);
  scaler.update();
  if (rank.rank == 0) optimizer->backward(scaler.scale(weight.sum()));
  DEMAND(scaler.step(*optimizer) == StepOutcome::updated);
  scaler.update();
  joined.data->barrier();
  return 0;
}

class TestGradScalerRanks : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void one_ranks_infinity_skips_on_both_data() {
    QTest::addColumn<QString>("backend");
    QTest::newRow("shared memory") << "shm";
    QTest::newRow("gloo") << "gloo";
  }

  void one_ranks_infinity_skips_on_both() {
    QFETCH(QString, backend);
    RankGroup ranks("train_with_overflows", 2, {.arguments = {backend.toStdString()}});
    const auto outcomes = ranks.finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    const std::vector<std::string> expected{"updated 1024.000000", "skipped_overflow 512.000000",
                                            "skipped_overflow 256.000000", "updated 256.000000"};
    for (const RankOutcome& outcome : outcomes) {
      QCOMPARE(outcome.lines.size(), 5U);
      QVERIFY(std::equal(expected.begin(), expected.end(), outcome.lines.begin()));
    }
    QCOMPARE(outcomes[0].lines.back(), outcomes[1].lines.back());
  }

  void a_rank_without_a_gradient_takes_part() {
    RankGroup ranks("step_without_a_gradient", 2);
    ACCRUE_ALL_RANKS_OK(ranks.finish(60s));
  }
};

}  // namespace

ACCRUE_RANK_TEST_MAIN(TestGradScalerRanks, {{"train_with_overflows", train_with_overflows},
                                            {"step_without_a_gradient", step_without_a_gradient}})

}  // namespace test_grad_scaler_ranks
#include "test_grad_scaler_ranks.moc"
