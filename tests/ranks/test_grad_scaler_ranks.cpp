// SPDX-License-Identifier: Apache-2.0
// The loss scaler over two ranks: what one of them finds, both act on.
#include <ATen/ATen.h>
#include <torch/optim/adam.h>

#include <QTest>
#include <limits>

#include "accrue/accumulation/grad_scaler.h"
#include "support/joined_rank.h"
#include "support/rank_cases.h"
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
  std::string outcomes;
  for (const int ill : {-1, 1, 0, -1}) {
    optimizer->zero_grad();
    const double slope = ill == rank.rank ? std::numeric_limits<double>::infinity() : 1.0;
    optimizer->backward(scaler.scale((weight * slope).sum()));
    const at::Tensor before = weight.detach().clone();
    const StepOutcome outcome = scaler.step(*optimizer);
    scaler.update();
    DEMAND((outcome == StepOutcome::skipped_overflow) == at::equal(before, weight.detach()));
    outcomes += std::string(to_string(outcome)) + " " + std::to_string(static_cast<int>(scaler.get_scale())) + ", ";
  }
  DEMAND(outcomes == "updated 1024, skipped_overflow 512, skipped_overflow 256, updated 256, ");
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

const RankCases cases = {{"one rank's infinity skips on both", train_with_overflows, {"shm", "gloo"}},
                         {"a rank without a gradient takes part", step_without_a_gradient}};

}  // namespace

class TestGradScalerRanks : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void on_ranks_data() { rank_rows(cases); }
  void on_ranks() { run_rank_row(); }
};

ACCRUE_RANK_TEST_MAIN(TestGradScalerRanks, (bodies_of(cases)))

}  // namespace test_grad_scaler_ranks
#include "test_grad_scaler_ranks.moc"
