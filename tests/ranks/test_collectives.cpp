// SPDX-License-Identifier: Apache-2.0
// Collectives of 1, 2 and 4 ranks as processes, over shared memory and over Gloo: right, equal on all ranks, counted,
// and bit-identical from run to run.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <QtTest/QTest>
#include <cmath>
#include <limits>

#include "support/joined_rank.h"
#include "support/rank_checks.h"

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

/// Values whose sum depends on the order of addition.
void fill_rough(at::Tensor& tensor, int rank) {
  float* values = tensor.mutable_data_ptr<float>();
  std::uint32_t state = 12345U + 977U * static_cast<std::uint32_t>(rank);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    state = state * 1664525U + 1013904223U;
    values[i] = static_cast<float>(state % 2000003U) * 1e-3F * (i % 7 == 0 ? 1e4F : 1.0F) - 400.0F;
  }
}

void check_sum(Communicator& axis, at::ScalarType dtype, std::int64_t numel) {
  const auto world = axis.size();
  at::Tensor tensor = at::full({numel}, static_cast<double>(axis.rank() + 1), at::TensorOptions(dtype));
  axis.all_reduce(tensor);
  const double sum = static_cast<double>(world * (world + 1)) / 2;
  if (numel > 0) DEMAND(tensor.min().item<double>() == sum && tensor.max().item<double>() == sum);
  tensor = at::full({numel}, static_cast<double>(axis.rank() + 1), at::TensorOptions(dtype));
  axis.all_reduce(tensor, Reduce::max);
  if (numel > 0) DEMAND(tensor.min().item<double>() == static_cast<double>(world));
}

void check_exchange(Communicator& axis, std::int64_t numel) {
  const auto world = axis.size();
  for (std::int64_t root = 0; root < world; ++root) {
    at::Tensor value = at::full({numel}, static_cast<double>(axis.rank() * 10 + 1), at::kFloat);
    axis.broadcast(value, root);
    DEMAND(value.min().item<double>() == static_cast<double>(root * 10 + 1));
    DEMAND(value.max().item<double>() == static_cast<double>(root * 10 + 1));
  }
  const at::Tensor in = at::arange(numel, at::kLong).add(axis.rank() * 1000000);
  at::Tensor out = at::empty({world, numel}, at::kLong);
  axis.all_gather(out, in);
  for (std::int64_t r = 0; r < world; ++r) DEMAND(out[r].equal(at::arange(numel, at::kLong).add(r * 1000000)));
  axis.barrier();
}

int every_collective(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  Communicator& axis = *joined.data;
  for (const std::int64_t numel : {0, 1, 3, 1000, 8192, 8193, 300001, 1200007}) {
    check_sum(axis, at::kFloat, numel);
    check_sum(axis, at::kDouble, numel);
    check_sum(axis, at::kLong, numel);
    check_sum(axis, at::kBFloat16, numel);
    check_sum(axis, at::kHalf, numel);
    if (numel > 0) check_exchange(axis, numel);
  }
  rank.report(axis.backend());
  return 0;
}

int rough_sums(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  std::string said;
  for (const std::int64_t numel : {100, 5000, 700001}) {
    at::Tensor ordinary = at::empty({numel}, at::kFloat);
    fill_rough(ordinary, rank.rank);
    joined.data->all_reduce(ordinary);
    at::Tensor shared = joined.data->shared_buffer(numel, at::kFloat);
    fill_rough(shared, rank.rank);
    joined.data->all_reduce_gradients(shared);
    // Over Gloo both take the same way; in shared memory one is staged and the other is not.
    DEMAND(shared.equal(ordinary));
    said += fingerprint(shared) + " ";
  }
  rank.report(said);
  return 0;
}

int shared_views(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Communicator& axis = *joined.data;
  at::Tensor first = axis.shared_buffer(100000, at::kDouble);
  at::Tensor second = axis.shared_buffer(70000, at::kFloat);
  DEMAND(first.abs().sum().item<double>() == 0);
  first.fill_(rank.rank + 1);
  second.fill_(10 * (rank.rank + 1));
  at::Tensor middle = first.narrow(0, 12345, 50000);
  axis.all_reduce(middle);
  axis.all_reduce(second);
  const double sum = rank.world * (rank.world + 1) / 2.0;
  DEMAND(first[12344].item<double>() == rank.rank + 1 && first[62345].item<double>() == rank.rank + 1);
  DEMAND(middle.min().item<double>() == sum && middle.max().item<double>() == sum);
  DEMAND(second.min().item<double>() == 10 * sum && second.max().item<double>() == 10 * sum);
  return 0;
}

int counts_traffic(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  Communicator& axis = *joined.data;
  std::vector<CollectiveRecord> records;
  int begun = 0;
  axis.set_observer([&](const CollectiveRecord& record) { records.push_back(record); });
  axis.set_begin_observer([&] { ++begun; });
  at::Tensor numbers = at::zeros({100}, at::kDouble);
  at::Tensor gradients = at::zeros({1000}, at::kFloat);
  axis.all_reduce(numbers);
  axis.all_reduce_gradients(gradients);
  axis.broadcast(numbers);
  axis.barrier();
  if (rank.world == 1) {
    DEMAND(records.empty() && begun == 0 && axis.traffic().calls == 0 && axis.traffic().bytes == 0);
    return 0;
  }
  DEMAND(begun == 4 && records.size() == 4);
  DEMAND(axis.traffic().calls == 4 && axis.traffic().bytes == 800 + 4000 + 800);
  DEMAND(axis.traffic().gradient_calls == 1 && axis.traffic().gradient_bytes == 4000);
  DEMAND(records[1].gradients && records[1].op == "all_reduce" && records[1].axis == "data" &&
         records[1].bytes == 4000);
  DEMAND(records[2].op == "broadcast" && records[2].begin_ns <= records[2].end_ns);
  DEMAND(records[3].begin_ns >= records[2].end_ns);
  return 0;
}

int keeps_a_nan(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  at::Tensor value = at::full({3}, rank.rank == 0 ? std::nan("") : 5.0, at::kDouble);
  joined.data->all_reduce(value, Reduce::max);
  DEMAND(std::isnan(value[1].item<double>()));
  return 0;
}

int other_calls(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  at::Tensor value = at::zeros({rank.rank == 0 ? 10 : 11}, at::kFloat);
  try {
    joined.data->all_reduce(value);
  } catch (const CommError& error) {
    rank.report(error.what());
  }
  return 0;
}

int refuses_bad_tensors(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  at::Tensor strided = at::zeros({4, 4}, at::kFloat).t().narrow(0, 0, 2);
  at::Tensor value = at::zeros({2}, at::kFloat);
  int refused = 0;
  const auto expect_refusal = [&](auto&& call) {
    try {
      call();
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  };
  expect_refusal([&] { joined.data->all_reduce(strided); });
  expect_refusal([&] { joined.data->broadcast(value, rank.world); });
  expect_refusal([&] { joined.data->all_gather(value, value); });
  DEMAND(refused == 3);
  joined.data->barrier();  // nothing of the refused calls is left half done
  return 0;
}

}  // namespace

class TestCollectives : public QObject {
  Q_OBJECT

  static void worlds() {
    QTest::addColumn<QString>("backend");
    QTest::addColumn<int>("world");
    for (const char* backend : {"shm", "gloo"}) {
      for (const int world : {1, 2, 4}) QTest::addRow("%s %d", backend, world) << QString::fromLatin1(backend) << world;
    }
  }

  static std::vector<RankOutcome> run(const std::string& body) {
    QFETCH(QString, backend);
    QFETCH(int, world);
    return RankGroup(body, world, {.arguments = {backend.toStdString()}}).finish(60s);
  }

 private Q_SLOTS:
  void every_collective_is_right_data() { worlds(); }
  void every_collective_is_right() {
    const auto outcomes = run("every_collective");
    ACCRUE_ALL_RANKS_OK(outcomes);
    QFETCH(QString, backend);
    QFETCH(int, world);
    for (const auto& each : outcomes) QCOMPARE(each.lines.at(0), world == 1 ? "single" : backend.toStdString());
  }

  void sums_are_equal_on_all_ranks_and_between_runs_data() { worlds(); }
  void sums_are_equal_on_all_ranks_and_between_runs() {
    const auto first = run("rough_sums");
    const auto second = run("rough_sums");
    ACCRUE_ALL_RANKS_OK(first);
    ACCRUE_ALL_RANKS_OK(second);
    for (const auto& each : first) QCOMPARE(each.lines.at(0), first[0].lines.at(0));
    for (const auto& each : second) QCOMPARE(each.lines.at(0), first[0].lines.at(0));
  }

  void shared_buffers_are_reduced_in_place() {
    for (const int world : {2, 3, 4}) ACCRUE_ALL_RANKS_OK(RankGroup("shared_views", world).finish(60s));
  }

  void counts_calls_and_bytes_data() { worlds(); }
  void counts_calls_and_bytes() { ACCRUE_ALL_RANKS_OK(run("counts_traffic")); }

  void a_nan_wins_the_maximum() { ACCRUE_ALL_RANKS_OK(RankGroup("keeps_a_nan", 2).finish(60s)); }

  void names_a_rank_that_calls_something_else() {
    const auto outcomes = RankGroup("other_calls", 2).finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    for (const auto& each : outcomes) {
      QVERIFY2(each.lines.at(0).find("the ranks call different collectives") != std::string::npos, each.text().c_str());
      QVERIFY2(each.lines.at(0).find("10 Float") != std::string::npos, each.text().c_str());
      QVERIFY2(each.lines.at(0).find("11 Float") != std::string::npos, each.text().c_str());
    }
  }

  void refuses_tensors_it_cannot_move_data() { worlds(); }
  void refuses_tensors_it_cannot_move() { ACCRUE_ALL_RANKS_OK(run("refuses_bad_tensors")); }
};

ACCRUE_RANK_TEST_MAIN(TestCollectives, {{"every_collective", every_collective},
                                        {"rough_sums", rough_sums},
                                        {"shared_views", shared_views},
                                        {"counts_traffic", counts_traffic},
                                        {"keeps_a_nan", keeps_a_nan},
                                        {"other_calls", other_calls},
                                        {"refuses_bad_tensors", refuses_bad_tensors}})
#include "test_collectives.moc"
