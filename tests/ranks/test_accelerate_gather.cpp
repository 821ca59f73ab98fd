// SPDX-License-Identifier: Apache-2.0
// Gathering over two ranks whose batches are not alike: padding, shapes that differ, and a rank that has run out of
// samples, which makes the same calls as the others.
#include <QtTest/QTest>

#include "support/accelerate_cases.h"
#include "support/joined_rank.h"
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

/// Batches of 3 without even_batches: 22 samples end with 3 and 1, 19 with 1 and none.
int uneven_last_batch(RankContext& rank) {
  auto axis = join_ranks(rank);
  for (const std::int64_t samples : {22, 19}) {
    Line model;
    Accelerator accelerator({.even_batches = false}, *axis.data);
    accelerator.prepare(model);
    auto loader = accelerator.prepare(value_loader(samples, {.batch_size = 3}));
    double sum = 0.0;
    for (const at::Tensor& x : loader) {
      const auto scope = accelerator.accumulate(model);
      accelerator.backward(model.loss(x));
      sum += accelerator.gather(accelerator.pad_across_processes(x)).sum().item<double>();
    }
    if (rank.rank == 0) DEMAND(sum == double(samples * (samples + 1)) / 2.0);
  }
  // Without padding a rank with an empty batch takes the shape of the other's last one.
  Line model;
  Accelerator accelerator({.even_batches = false}, *axis.data);
  accelerator.prepare(model);
  auto loader = accelerator.prepare(value_loader(19, {.batch_size = 3}));
  double sum = 0.0;
  for (const at::Tensor& x : loader) {
    const auto scope = accelerator.accumulate(model);
    accelerator.backward(model.loss(x));
    sum += accelerator.gather(x).sum().item<double>();
  }
  if (rank.rank == 0) DEMAND(sum == 190.0);
  axis.data->barrier();
  return 0;
}

/// 15 samples in batches of 3: rank 1 has no third batch, and `body` is called with an empty one.
template <typename Body>
int three_batches(RankContext& rank, Body body) {
  auto axis = join_ranks(rank);
  Line model;
  torch::optim::SGD sgd(model.parameters(), torch::optim::SGDOptions(0.01));
  Accelerator accelerator({.even_batches = false}, *axis.data);
  accelerator.prepare(model);
  auto& optimizer = accelerator.prepare(sgd);
  auto loader = accelerator.prepare(value_loader(15, {.batch_size = 3}));
  DEMAND(loader.length() == (rank.rank == 0 ? 3 : 2));
  int batches = 0;
  for (const at::Tensor& x : loader) {
    ++batches;
    DEMAND(x.numel() == (rank.rank == 1 && batches == 3 ? 0 : 3));
    body(accelerator, model, optimizer, x);
  }
  DEMAND(batches == 3);
  rank.report(std::to_string(model.value()));
  return 0;
}

void train(Accelerator& accelerator, Line& model, AcceleratedOptimizer& optimizer, const at::Tensor& x) {
  const auto scope = accelerator.accumulate(model);
  accelerator.backward(model.loss(x));
  optimizer.step();
  optimizer.zero_grad();
}

int saves_in_a_joined_loop(RankContext& rank) {
  const std::string folder = rank.arguments.at(0);
  return three_batches(
      rank, [&](Accelerator& accelerator, Line& model, AcceleratedOptimizer& optimizer, const at::Tensor& x) {
        train(accelerator, model, optimizer, x);
        accelerator.save_state(folder).value();
      });
}

/// Before the scope, as an evaluation would, and with what comes out of an empty batch.
int gathers_outside_accumulate(RankContext& rank) {
  double sum = 0.0;
  std::vector<std::int64_t> sizes;
  std::vector<double> losses;
  const int result = three_batches(
      rank, [&](Accelerator& accelerator, Line& model, AcceleratedOptimizer& optimizer, const at::Tensor& x) {
        const at::Tensor all = accelerator.gather(x);
        sizes.push_back(all.numel());
        sum += all.sum().item<double>();
        const at::Tensor mean = accelerator.reduce(model.loss(x).detach().reshape({1}), Reduction::sum);
        losses.push_back(mean.item<double>());
        train(accelerator, model, optimizer, x);
      });
  DEMAND(sum == 120.0);
  DEMAND((sizes == std::vector<std::int64_t>{6, 6, 6}));
  for (const double each : losses) DEMAND(std::isfinite(each));  // the mean over no sample is not a number
  return result;
}

void two_ranks(const char* body, std::vector<std::string> arguments = {}) {
  ACCRUE_ALL_RANKS_OK(RankGroup(body, 2, {.arguments = std::move(arguments)}).finish(60s));
}

}  // namespace

class TestAccelerateGather : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void tensors_are_padded_to_the_longest_and_differing_ones_are_named() { two_ranks("pads"); }
  void an_uneven_last_batch_is_gathered() { two_ranks("uneven_last_batch"); }
  void a_rank_without_samples_saves_with_the_others() {
    QTemporaryDir folder;
    two_ranks("saves_in_a_joined_loop", {folder.filePath(QStringLiteral("state")).toStdString()});
  }
  void a_rank_without_samples_gathers_zeros_anywhere_in_the_loop() { two_ranks("gathers_outside_accumulate"); }
};

ACCRUE_RANK_TEST_MAIN(TestAccelerateGather, {{"pads", pads},
                                             {"uneven_last_batch", uneven_last_batch},
                                             {"saves_in_a_joined_loop", saves_in_a_joined_loop},
                                             {"gathers_outside_accumulate", gathers_outside_accumulate}})

}  // namespace test_accelerate_gather
#include "test_accelerate_gather.moc"
