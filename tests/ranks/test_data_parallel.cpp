// SPDX-License-Identifier: Apache-2.0
// DistributedDataParallel with 1, 2 and 4 ranks over shared memory and Gloo: the same weights as one process on the
// whole batch, the least traffic whatever the number of micro-steps, and every liberty that a user's loop may take.
#include <signal.h>
#include <torch/nn/module.h>
#include <torch/optim/adamw.h>
#include <unistd.h>

#include <QTest>
#include <cmath>

#include "support/rank_cases.h"
#include "support/rank_checks.h"
#include "support/rank_net.h"
#include "support/refusals.h"

namespace test_data_parallel {

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

/// One process, the whole batch at once.
void train_alone(Net& net, int updates) {
  torch::optim::AdamW optimizer(net.parameters(), torch::optim::AdamWOptions(0.05));
  for (int update = 0; update < updates; ++update) {
    optimizer.zero_grad();
    (loss_of(net, update, 0, kSamples) / kSamples).backward();
    optimizer.step();
  }
}

double largest_difference(const Net& a, const Net& b) {
  double largest = 0;
  const auto left = a.parameters(), right = b.parameters();
  for (std::size_t i = 0; i < left.size(); ++i) {
    largest = std::max(largest, apart(left[i], right[i]));
  }
  return largest;
}

/// This rank's part of an update in `micro_steps` micro-steps; the last one reduces.
template <typename Clear>
void accumulate(Net& net, DistributedDataParallel& ddp, Communicator& axis, int update, std::int64_t micro_steps,
                Clear&& clear) {
  const std::int64_t mine = kSamples / axis.size();
  const std::int64_t micro = mine / micro_steps;
  clear();
  for (std::int64_t m = 0; m < micro_steps; ++m) {
    const at::Tensor loss = loss_of(net, update, axis.rank() * mine + m * micro, micro) / kSamples;
    if (m + 1 < micro_steps) {
      const auto quiet = ddp.no_sync();
      loss.backward();
    } else {
      loss.backward();
    }
  }
  ddp.finish();
}

std::string weights_of(const Net& net) {
  std::string all;
  for (const auto& each : net.parameters()) all += fingerprint(each) + " ";
  return all;
}

/// arguments: backend, dtype, micro-steps, launch.
int equals_one_process(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  Communicator& axis = *joined.data;
  const auto dtype = rank.arguments.at(1) == "float64" ? at::kDouble : at::kFloat;
  const std::int64_t micro_steps = std::stoi(rank.arguments.at(2));
  const int updates = 6;

  Net alone(7, dtype);
  train_alone(alone, updates);

  Net net(static_cast<std::uint32_t>(7 + 100 * rank.rank), dtype);  // other ranks get rank 0's values by the broadcast
  DistributedDataParallel ddp(net, axis,
                              {.bucket_bytes = 700, .op = ReduceOp::sum, .launch = launch_named(rank.arguments.at(3))});
  DEMAND(net.count.item<std::int64_t>() == 7);
  const auto buckets = static_cast<std::int64_t>(ddp.layout().buckets.size());
  const std::int64_t gradient_bytes = ddp.flat_gradients().numel() * static_cast<std::int64_t>(net.in.element_size());
  DEMAND(buckets > 2);
  torch::optim::AdamW optimizer(net.parameters(), torch::optim::AdamWOptions(0.05));
  const TrafficCounters before = axis.traffic();
  for (int update = 0; update < updates; ++update) {
    accumulate(net, ddp, axis, update, micro_steps, [&] { ddp.zero_grad(); });
    optimizer.step();
  }
  const TrafficCounters& after = axis.traffic();
  const std::int64_t rounds = axis.size() == 1 ? 0 : updates;
  DEMAND(ddp.reductions() == rounds * buckets);
  DEMAND(after.gradient_calls - before.gradient_calls == rounds * buckets);
  DEMAND(after.gradient_bytes - before.gradient_bytes == rounds * gradient_bytes);
  // Besides the gradients: whether any rank used `spare`, whose sum is zero, and the buffer.
  DEMAND(after.calls - before.calls == rounds * (buckets + 2));
  const double difference = largest_difference(net, alone);
  if (difference > (dtype == at::kDouble ? 1e-12 : 1e-4))
    throw std::runtime_error("differs by " + std::to_string(difference));
  rank.report(weights_of(net));
  return 0;
}

int means_over_ranks(RankContext& rank) {
  RankNet of(rank);
  const std::int64_t mine = kSamples / of.axis.size();
  loss_of(of.net, 0, of.axis.rank() * mine, mine).div(static_cast<double>(mine)).backward();
  of.ddp.finish();

  Net alone(3);
  loss_of(alone, 0, 0, kSamples).div(static_cast<double>(kSamples)).backward();
  DEMAND(apart(of.net.in.grad(), alone.in.grad()) < 1e-14);
  return 0;
}

/// The sync flag is read when gradients arrive, so a scope around backward alone is enough; and scopes nest and are
/// left by exceptions.
int no_sync_around_backward(RankContext& rank) {
  RankNet of(rank, {.op = ReduceOp::sum});
  auto& [joined, axis, net, ddp] = of;
  const at::Tensor loss = loss_of(net, 0, rank.rank, 1);
  {
    const auto quiet = ddp.no_sync();
    loss.backward();
    ddp.finish();
    error_of([&ddp = ddp] {
      const auto again = ddp.no_sync();
      throw std::runtime_error("leaves the scope");
    });
    DEMAND(!ddp.sync_enabled());
  }
  DEMAND(ddp.sync_enabled());
  DEMAND(axis.traffic().gradient_calls == 0);
  loss_of(net, 0, 2 + rank.rank, 1).backward();
  ddp.finish();

  Net alone(3);
  loss_of(alone, 0, 0, 4).backward();
  DEMAND(apart(net.in.grad(), alone.in.grad()) < 1e-13);
  return 0;
}

/// Two backwards with sync on before one finish() add up; where buckets go out when they are ready, the second one
/// would come too late and is refused.
int several_backwards(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Net alone(3);
  loss_of(alone, 0, 0, 4).backward();
  {
    Net net(3);
    DistributedDataParallel ddp(net, *joined.data, {.bucket_bytes = 256, .op = ReduceOp::sum});
    loss_with_spare(net, rank.rank).backward();
    loss_with_spare(net, 2 + rank.rank).backward();
    ddp.finish();
    DEMAND(apart(net.in.grad(), alone.in.grad()) < 1e-13);
  }
  Net net(3);
  DistributedDataParallel ddp(net, *joined.data, {.launch = LaunchBuckets::when_ready});
  loss_with_spare(net, rank.rank).backward();
  DEMAND(ddp.reductions() == 1);  // during backward
  DEMAND(contains(error_of([&] { loss_with_spare(net, rank.rank).backward(); }), "call finish()"));
  return 0;
}

/// Four updates of a loop that clears by itself; the net of one process that does the same.
template <typename Clear>
void equals_one_process_that_clears(RankNet& of, std::int64_t micro_steps, Clear&& clear) {
  Net alone(7);
  train_alone(alone, 4);
  torch::optim::AdamW optimizer(of.net.parameters(), torch::optim::AdamWOptions(0.05));
  for (int update = 0; update < 4; ++update) {
    accumulate(of.net, of.ddp, of.axis, update, micro_steps, [&] { clear(optimizer, update); });
    optimizer.step();
  }
  DEMAND(largest_difference(of.net, alone) < 1e-12);
}

int user_drops_gradients(RankContext& rank) {
  RankNet of(rank, {.op = ReduceOp::sum}, 7);
  auto& [joined, axis, net, ddp] = of;
  equals_one_process_that_clears(
      of, 4, [&net = net](auto& optimizer, int update) { update % 2 == 0 ? optimizer.zero_grad() : net.zero_grad(); });
  DEMAND(!net.spare.grad().defined());
  const auto [offset, size] = ddp.layout().parameters[0];
  DEMAND(net.in.grad().data_ptr() == ddp.flat_gradients().narrow(0, offset, size).data_ptr());

  // A gradient that the user assigned is taken as it is.
  ddp.zero_grad();
  net.out.mutable_grad() = at::full_like(net.out, static_cast<double>(rank.rank + 1));
  ddp.finish();
  DEMAND(net.out.grad().min().item<double>() == 3 && net.out.grad().max().item<double>() == 3);
  return 0;
}

/// zero_grad(false) keeps the gradients where they are.
int user_zeroes_gradients(RankContext& rank) {
  RankNet of(rank, {.op = ReduceOp::sum}, 7);
  equals_one_process_that_clears(of, 2, [&](auto& optimizer, int update) {
    update % 2 == 0 ? optimizer.zero_grad(false) : of.net.zero_grad(false);
  });
  return 0;
}

/// Rank 1 is killed by itself between two buckets that backward has started to reduce.
int dies_in_backward(RankContext& rank) {
  RankNet of(rank, {.bucket_bytes = 256, .launch = LaunchBuckets::when_ready});
  auto& [joined, axis, net, ddp] = of;
  int reduced = 0;
  joined.data->set_observer([&](const CollectiveRecord& record) {
    if (record.purpose == CollectivePurpose::gradients && ++reduced == 2 && rank.rank == 1) ::raise(SIGKILL);
  });
  try {
    loss_with_spare(net, rank.rank).backward();
    ddp.finish();
  } catch (const CommError& error) {
    rank.report(error.what());
    ::_exit(0);
  }
  return 1;
}

struct Tied : torch::nn::Module {
  Tied() {
    first = register_parameter("first", numbers({4, 4}, 1, at::kDouble));
    second = register_parameter("second", first);
    frozen = register_parameter("frozen", numbers({4}, 2, at::kDouble), /*requires_grad=*/false);
  }
  at::Tensor first, second, frozen;
};

int tied_and_frozen_weights(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Tied net;
  DistributedDataParallel ddp(net, *joined.data, {.op = ReduceOp::sum});
  DEMAND(ddp.parameters().size() == 1);
  const at::Tensor x = numbers({4}, static_cast<std::uint32_t>(10 + rank.rank), at::kDouble);
  at::matmul(net.second, at::matmul(net.first, x)).sum().backward();
  ddp.finish();

  Tied alone;
  for (std::uint32_t r = 0; r < 2; ++r)
    at::matmul(alone.second, at::matmul(alone.first, numbers({4}, 10 + r, at::kDouble))).sum().backward();
  DEMAND(apart(net.first.grad(), alone.first.grad()) < 1e-14);
  DEMAND(!net.frozen.grad().defined());
  return 0;
}

/// The buckets go out in the layout's order although this loss finishes the first layer's gradients first.
int fixed_bucket_order(RankContext& rank) {
  RankNet of(rank, {.bucket_bytes = 1 << 10, .launch = launch_of(rank)});
  auto& [joined, axis, net, ddp] = of;
  std::vector<std::int64_t> sizes;
  axis.set_observer([&](const CollectiveRecord& record) {
    if (record.purpose == CollectivePurpose::gradients) sizes.push_back(record.bytes);
  });
  for (int round = 0; round < 2; ++round) {
    sizes.clear();
    (rank.rank == 0 ? net.in.sum() + net.out.sum() : net.out_bias.sum()).backward();
    ddp.finish();
    DEMAND(sizes.size() == ddp.layout().buckets.size());
    for (std::size_t b = 0; b < sizes.size(); ++b) DEMAND(sizes[b] == ddp.layout().buckets[b].size * 8);
  }
  return 0;
}

/// Errors of `make` on every rank name the difference, and the axis can still be used.
template <typename Make>
int refuses(RankContext& rank, const std::string& says, Make&& make) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  const std::string error = refused([&] { make(*joined.data); });
  if (!contains(error, says)) throw std::runtime_error("says " + error);
  Net same(3);
  DistributedDataParallel ddp(same, *joined.data);
  return 0;
}

int refuses_other_models(RankContext& rank) {
  const bool other = rank.rank == 1;
  return refuses(rank, other ? "in [38, 5] Double" : "in [37, 5] Double", [&](Communicator& axis) {
    Net net(3, at::kDouble, other ? 38 : 37);
    DistributedDataParallel(net, axis);
  });
}

int refuses_other_requires_grad(RankContext& rank) {
  return refuses(rank, "out_bias [3] Double", [&](Communicator& axis) {
    Net net(3);
    if (rank.rank == 1) net.out_bias.requires_grad_(false);
    DistributedDataParallel(net, axis);
  });
}

int refuses_other_options(RankContext& rank) {
  const std::int64_t bytes = rank.rank == 1 ? 512 : 1024;
  return refuses(rank, "bucket_bytes " + std::to_string(bytes), [&](Communicator& axis) {
    Net net(3);
    DistributedDataParallel(net, axis, {.bucket_bytes = bytes});
  });
}

/// A second one on the same module would count gradients twice; after the first is gone it is welcome.
int one_at_a_time(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Net net(3);
  {
    DistributedDataParallel ddp(net, *joined.data);
    DEMAND(!refused([&] { DistributedDataParallel(net, *joined.data); }).empty());
  }
  DistributedDataParallel ddp(net, *joined.data, {.op = ReduceOp::sum});
  net.out.sum().backward();
  ddp.finish();
  DEMAND(net.out.grad().max().item<double>() == rank.world);
  return 0;
}

const std::vector<std::string> backends = {"shm", "gloo"};
/// Gradual unfreezing: nothing would reduce the gradient, and the ranks would drift apart. A window that is not reduced
/// is not refused.
int refuses_later_parameters(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Tied net;
  DistributedDataParallel ddp(net, *joined.data);
  const auto pass = [&] {
    at::matmul(net.second, at::matmul(net.first, numbers({4}, 10, at::kDouble))).sum().backward();
    ddp.finish();
  };
  pass();
  ddp.zero_grad();
  const std::string& how = rank.arguments.at(0);
  if (how == "frozen") net.frozen.requires_grad_(true);
  if (how == "later") net.register_parameter("later", at::zeros({1}));
  if (how == "head.weight") net.register_module("head", torch::nn::Linear(1, 1));
  {
    const auto quiet = ddp.no_sync();
    pass();
  }
  const std::string said = error_of(pass);
  if (said.find("parameter " + how + " requires a gradient") == std::string::npos) throw std::runtime_error(said);
  ddp.leave_local();
  return 0;
}

const RankCases cases = {{"the mean divides by the ranks", means_over_ranks},
                         {"no_sync may cover backward alone", no_sync_around_backward},
                         {"several backwards add up before one finish", several_backwards},
                         {"gradients may be dropped or assigned", user_drops_gradients},
                         {"tied weights have one gradient and frozen ones none", tied_and_frozen_weights},
                         {"buckets are reduced in fixed order", fixed_bucket_order, {"at_finish", "when_ready"}},
                         {"names the parameter that differs between ranks", refuses_other_models, backends},
                         {"names the parameter whose requires_grad differs", refuses_other_requires_grad, backends},
                         {"says that options differ between ranks", refuses_other_options, backends},
                         {"one wrapper per module", one_at_a_time},
                         {"a parameter that was unfrozen or added later is refused by name",
                          refuses_later_parameters,
                          {"frozen", "later", "head.weight"},
                          {1, 2}}};

}  // namespace

class TestDataParallel : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void on_ranks_data() { rank_rows(cases); }
  void on_ranks() { run_rank_row(); }

  void equals_one_process_on_the_whole_batch_data() {
    QTest::addColumn<QString>("backend");
    QTest::addColumn<int>("world");
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<int>("microSteps");
    QTest::addColumn<QString>("launch");
    const auto row = [](const char* backend, int world, const char* dtype, int micro_steps,
                        const char* launch = "at_finish") {
      QTest::addRow("%s, %d ranks, %s, N = %d, %s", backend, world, dtype, micro_steps, launch)
          << QString::fromLatin1(backend) << world << QString::fromLatin1(dtype) << micro_steps
          << QString::fromLatin1(launch);
    };
    for (const int micro_steps : {1, 4, 16}) row("shm", 2, "float64", micro_steps);
    row("shm", 1, "float64", 4);
    row("shm", 4, "float64", 4);
    row("shm", 4, "float32", 8);
    row("gloo", 1, "float32", 1);
    row("gloo", 2, "float32", 16);
    row("gloo", 4, "float64", 1);
    row("shm", 4, "float64", 2, "when_ready");
    row("gloo", 2, "float64", 4, "when_ready");
  }
  void equals_one_process_on_the_whole_batch() {
    QFETCH(QString, backend);
    QFETCH(int, world);
    QFETCH(QString, dtype);
    QFETCH(int, microSteps);
    QFETCH(QString, launch);
    const std::vector<std::string> arguments = {backend.toStdString(), dtype.toStdString(), std::to_string(microSteps),
                                                launch.toStdString()};
    const auto first = RankGroup("equals_one_process", world, {.arguments = arguments}).finish(90s);
    ACCRUE_ALL_RANKS_OK(first);
    for (const auto& each : first) QCOMPARE(each.lines.at(0), first[0].lines.at(0));
    const auto second = RankGroup("equals_one_process", world, {.arguments = arguments}).finish(90s);
    ACCRUE_ALL_RANKS_OK(second);
    QCOMPARE(second[0].lines.at(0), first[0].lines.at(0));  // bit-identical from run to run
  }

  void zeroed_gradients_stay_in_place() {
    const auto outcomes = RankGroup("user_zeroes_gradients", 2).finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    for (const auto& each : outcomes) QVERIFY2(each.errors.empty(), each.errors.c_str());
  }

  void a_killed_rank_ends_the_reduction_with_a_comm_error() {
    RankGroup ranks("dies_in_backward", 2);
    QVERIFY(ranks.wait_for_end(0, 60s));
    const auto outcomes = ranks.finish(10s);
    QVERIFY2(outcomes[0].ok(), outcomes[0].text().c_str());
    QVERIFY2(
        outcomes[0].lines.at(0).find("rank 1 (pid " + std::to_string(ranks.pid(1)) + ") ended") != std::string::npos,
        outcomes[0].text().c_str());
    QCOMPARE(outcomes[1].signal, SIGKILL);
  }
};

ACCRUE_RANK_TEST_MAIN(TestDataParallel, (bodies_of(cases, {{"equals_one_process", equals_one_process},
                                                           {"user_zeroes_gradients", user_zeroes_gradients},
                                                           {"dies_in_backward", dies_in_backward}})))

}  // namespace test_data_parallel
#include "test_data_parallel.moc"
