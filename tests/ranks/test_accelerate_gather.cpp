// SPDX-License-Identifier: Apache-2.0
// Gathering over two ranks whose batches are not alike: padding, shapes that differ, and calls that a rank without a
// batch cannot know of, which are refused by name instead of meeting another collective.
#include <QtTest/QTest>

#include "support/accelerate_cases.h"
#include "support/joined_rank.h"
#include "support/rank_checks.h"

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

template <typename F>
std::string error_of(F&& call) {
  try {
    call();
  } catch (const CommError&) {
    return "lost";
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

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
  // Without padding a rank that goes along takes the shape of the other's last batch.
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

/// 15 samples in batches of 3: rank 1 has no third batch, and could not make the call that `body` makes at each.
template <typename Body>
int refused_at_the_third_batch(RankContext& rank, const char* call, Body body) {
  auto axis = join_ranks(rank);
  Line model;
  torch::optim::SGD sgd(model.parameters(), torch::optim::SGDOptions(0.01));
  Accelerator accelerator({.even_batches = false}, *axis.data);
  accelerator.prepare(model);
  auto& optimizer = accelerator.prepare(sgd);
  auto loader = accelerator.prepare(value_loader(15, {.batch_size = 3}));
  int batches = 0;
  const std::string error = error_of([&] {
    for (const at::Tensor& x : loader) {
      ++batches;
      body(accelerator, model, optimizer, x);
    }
  });
  DEMAND(batches == (rank.rank == 0 ? 3 : 2));
  // It is left alone in a collective, or has gone through the last of them.
  if (rank.rank == 1) return error == "lost" || error.empty() ? 0 : 1;
  rank.report(error);
  DEMAND(error.find(std::string(call) + ": a rank has no batch left") == 0);
  DEMAND(error.find("empty_micro_steps") != std::string::npos);
  return 0;
}

int saves_in_a_joined_loop(RankContext& rank) {
  const std::string folder = rank.arguments.at(0);
  return refused_at_the_third_batch(
      rank, "save_state",
      [&](Accelerator& accelerator, Line& model, AcceleratedOptimizer& optimizer, const at::Tensor& x) {
        const auto scope = accelerator.accumulate(model);
        accelerator.backward(model.loss(x));
        optimizer.step();
        optimizer.zero_grad();
        if (!accelerator.save_state(folder)) throw std::runtime_error("not saved");
      });
}

int gathers_without_accumulate(RankContext& rank) {
  return refused_at_the_third_batch(
      rank, "gather",
      [](Accelerator& accelerator, Line&, AcceleratedOptimizer&, const at::Tensor& x) { accelerator.gather(x); });
}

int gathers_before_accumulate(RankContext& rank) {
  return refused_at_the_third_batch(
      rank, "gather", [](Accelerator& accelerator, Line& model, AcceleratedOptimizer& optimizer, const at::Tensor& x) {
        accelerator.gather(x);
        const auto scope = accelerator.accumulate(model);
        accelerator.backward(model.loss(x));
        optimizer.step();
        optimizer.zero_grad();
      });
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
  void a_save_that_a_joined_rank_would_not_make_is_refused() {
    QTemporaryDir folder;
    two_ranks("saves_in_a_joined_loop", {folder.filePath(QStringLiteral("state")).toStdString()});
  }
  void a_gather_in_a_loop_without_accumulate_is_refused_where_a_rank_joins() {
    two_ranks("gathers_without_accumulate");
  }
  void a_gather_before_accumulate_is_refused_where_a_rank_joins() { two_ranks("gathers_before_accumulate"); }
};

ACCRUE_RANK_TEST_MAIN(TestAccelerateGather, {{"pads", pads},
                                             {"uneven_last_batch", uneven_last_batch},
                                             {"saves_in_a_joined_loop", saves_in_a_joined_loop},
                                             {"gathers_without_accumulate", gathers_without_accumulate},
                                             {"gathers_before_accumulate", gathers_before_accumulate}})
#include "test_accelerate_gather.moc"
