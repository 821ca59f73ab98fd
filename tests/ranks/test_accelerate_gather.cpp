// SPDX-License-Identifier: Apache-2.0
// Gathering over two ranks whose batches are not alike: padding, shapes that differ, and a rank that has run out of
// samples, which makes the same calls as the others.
#include <QTemporaryDir>
#include <QTest>

#include "support/accelerate_cases.h"
#include "support/joined_rank.h"
#include "support/rank_cases.h"
#include "support/rank_checks.h"
#include "support/refusals.h"

namespace test_accelerate_gather {

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

/// Rank r pads r + 1 values.
int pads(RankContext& rank) {
  auto axis = join_ranks(rank);
  Accelerator accelerator({}, *axis.data);
  const bool shorter = rank.rank == 0;
  const at::Tensor mine = shorter ? points({1.0}) : points({2.0, 3.0});
  DEMAND(accelerator.pad_across_processes(mine).equal(shorter ? points({1.0, 0.0}) : mine));
  DEMAND(accelerator.pad_across_processes(mine, 0, -100.0, true).equal(shorter ? points({-100.0, 1.0}) : mine));
  const at::Tensor rows = mine.reshape({1, -1}).to(at::kLong);
  const at::Tensor padded = accelerator.pad_across_processes(rows, -1, 7.0);
  DEMAND(padded.scalar_type() == at::kLong);
  DEMAND(accelerator.gather(padded).flatten().to(at::kDouble).equal(points({1.0, 7.0, 2.0, 3.0})));
  DEMAND(accelerator.pad_across_processes(rows, 0).equal(rows));  // as long on both
  DEMAND(accelerator.pad_across_processes(mine, 1).equal(mine));  // no such dim
  DEMAND(accelerator.pad_across_processes(mine, -2).equal(mine));
  DEMAND(accelerator.pad_across_processes(at::full({}, 5.0)).dim() == 0);
  const std::string error = error_of([&] { accelerator.gather(mine); });
  DEMAND(error.find("rank 0 [1], rank 1 [2]") != std::string::npos);
  DEMAND(error.find("pad_across_processes") != std::string::npos);
  DEMAND(accelerator.gather(points({1.0})).numel() == 2);  // the ranks are still together
  return 0;
}

/// Batches of 3 without even_batches: 22 samples end with 3 and 1, 19 with 1 and none. Without padding a rank with an
/// empty batch takes the shape of the other's last one.
int uneven_last_batch(RankContext& rank) {
  auto axis = join_ranks(rank);
  for (const auto& [samples, pads] : {std::pair(22, true), std::pair(19, true), std::pair(19, false)}) {
    TrainedLine t({.even_batches = false}, 0.0, 0.0, axis.data.get());
    auto loader = t.accelerator.prepare(value_loader(samples, {.batch_size = 3}));
    double sum = 0.0;
    for (const at::Tensor& x : loader) {
      t.micro_step(1.0, x);
      sum += t.accelerator.gather(pads ? t.accelerator.pad_across_processes(x) : x).sum().item<double>();
    }
    if (rank.rank == 0) DEMAND(sum == double(samples * (samples + 1)) / 2.0);
  }
  axis.data->barrier();
  return 0;
}

/// 15 samples in batches of 3: rank 1 has no third batch, and `body` is called with an empty one.
template <typename Body>
int three_batches(RankContext& rank, Body body) {
  auto axis = join_ranks(rank);
  TrainedLine t({.even_batches = false}, 0.01, 0.0, axis.data.get());
  auto loader = t.accelerator.prepare(value_loader(15, {.batch_size = 3}));
  DEMAND(loader.length() == (rank.rank == 0 ? 3 : 2));
  int batches = 0;
  for (const at::Tensor& x : loader) {
    ++batches;
    DEMAND(x.numel() == (rank.rank == 1 && batches == 3 ? 0 : 3));
    body(t, x);
  }
  DEMAND(batches == 3);
  rank.report(std::to_string(t.model.value()));
  return 0;
}

int saves_in_a_joined_loop(RankContext& rank) {
  return three_batches(rank, [&](TrainedLine& t, const at::Tensor& x) {
    t.micro_step(1.0, x);
    t.accelerator.save_state(rank.arguments.at(0)).value();
  });
}

/// Before the scope, as an evaluation would, and with what comes out of an empty batch.
int gathers_outside_accumulate(RankContext& rank) {
  double sum = 0.0;
  std::vector<std::int64_t> sizes;
  std::vector<double> losses;
  const int result = three_batches(rank, [&](TrainedLine& t, const at::Tensor& x) {
    const at::Tensor all = t.accelerator.gather(x);
    sizes.push_back(all.numel());
    sum += all.sum().item<double>();
    const at::Tensor mean = t.accelerator.reduce(t.model.loss(x).detach().reshape({1}), Reduction::sum);
    losses.push_back(mean.item<double>());
    t.micro_step(1.0, x);
  });
  DEMAND(sum == 120.0);
  DEMAND((sizes == std::vector<std::int64_t>{6, 6, 6}));
  for (const double each : losses) DEMAND(std::isfinite(each));  // the mean over no sample is not a number
  return result;
}

const RankCases cases = {{"tensors are padded to the longest, and differing ones are named", pads},
                         {"an uneven last batch is gathered", uneven_last_batch},
                         {"a rank without samples gathers zeros anywhere in the loop", gathers_outside_accumulate}};

}  // namespace

class TestAccelerateGather : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void on_ranks_data() { rank_rows(cases); }
  void on_ranks() { run_rank_row(); }
  void a_rank_without_samples_saves_with_the_others() {
    QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("state")).toStdString();
    ACCRUE_ALL_RANKS_OK(RankGroup("saves", 2, {.arguments = {path}}).finish(60s));
  }
};

ACCRUE_RANK_TEST_MAIN(TestAccelerateGather, (bodies_of(cases, {{"saves", saves_in_a_joined_loop}})))

}  // namespace test_accelerate_gather
#include "test_accelerate_gather.moc"
