// SPDX-License-Identifier: Apache-2.0
// DistributedDataParallel with 1, 2 and 4 ranks over shared memory and Gloo: the same weights as one process on the
// whole batch, the least traffic whatever the number of micro-steps, and every liberty that a user's loop may take.
#include <signal.h>
#include <torch/nn/module.h>
#include <torch/optim/adamw.h>
#include <unistd.h>

#include <QtTest/QTest>
#include <cmath>

#include "accrue/parallel/distributed_data_parallel.h"
#include "support/joined_rank.h"
#include "support/rank_checks.h"
#include "support/small_net.h"

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
    largest = std::max(largest, (left[i] - right[i]).abs().max().item<double>());
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
  // Beside the gradients: whether anybody used `spare`, whose sum is zero, and the buffer.
  DEMAND(after.calls - before.calls == rounds * (buckets + 2));
  const double difference = largest_difference(net, alone);
  if (difference > (dtype == at::kDouble ? 1e-12 : 1e-4))
    throw std::runtime_error("differs by " + std::to_string(difference));
  rank.report(weights_of(net));
  return 0;
}

int means_over_ranks(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Communicator& axis = *joined.data;
  Net net(3);
  DistributedDataParallel ddp(net, axis);
  const std::int64_t mine = kSamples / axis.size();
  loss_of(net, 0, axis.rank() * mine, mine).div(static_cast<double>(mine)).backward();
  ddp.finish();

  Net alone(3);
  loss_of(alone, 0, 0, kSamples).div(static_cast<double>(kSamples)).backward();
  DEMAND((net.in.grad() - alone.in.grad()).abs().max().item<double>() < 1e-14);
  return 0;
}

/// The sync flag is read when gradients arrive, so a scope around backward alone is enough; and scopes nest and are
/// left by exceptions.
int no_sync_around_backward(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Communicator& axis = *joined.data;
  Net net(3);
  DistributedDataParallel ddp(net, axis, {.op = ReduceOp::sum});
  const at::Tensor loss = loss_of(net, 0, rank.rank, 1);
  {
    const auto quiet = ddp.no_sync();
    loss.backward();
    ddp.finish();
    try {
      const auto again = ddp.no_sync();
      throw std::runtime_error("leaves the scope");
    } catch (const std::runtime_error&) {
    }
    DEMAND(!ddp.sync_enabled());
  }
  DEMAND(ddp.sync_enabled());
  DEMAND(axis.traffic().gradient_calls == 0);
  loss_of(net, 0, 2 + rank.rank, 1).backward();
  ddp.finish();

  Net alone(3);
  loss_of(alone, 0, 0, 4).backward();
  DEMAND((net.in.grad() - alone.in.grad()).abs().max().item<double>() < 1e-13);
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
    DEMAND((net.in.grad() - alone.in.grad()).abs().max().item<double>() < 1e-13);
  }
  Net net(3);
  DistributedDataParallel ddp(net, *joined.data, {.launch = LaunchBuckets::when_ready});
  loss_with_spare(net, rank.rank).backward();
  DEMAND(ddp.reductions() == 1);  // during backward
  try {
    loss_with_spare(net, rank.rank).backward();
  } catch (const std::logic_error& error) {
    DEMAND(std::string(error.what()).find("call finish()") != std::string::npos);
    return 0;
  }
  return 1;
}

int user_drops_gradients(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Communicator& axis = *joined.data;
  Net alone(7);
  train_alone(alone, 4);
  Net net(7);
  DistributedDataParallel ddp(net, axis, {.op = ReduceOp::sum});
  torch::optim::AdamW optimizer(net.parameters(), torch::optim::AdamWOptions(0.05));
  for (int update = 0; update < 4; ++update) {
    accumulate(net, ddp, axis, update, 4, [&] { update % 2 == 0 ? optimizer.zero_grad() : net.zero_grad(); });
    optimizer.step();
  }
  DEMAND(largest_difference(net, alone) < 1e-12);
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
  const auto joined = join_ranks(rank, BackendKind::shm);
  Net alone(7);
  train_alone(alone, 4);
  Net net(7);
  DistributedDataParallel ddp(net, *joined.data, {.op = ReduceOp::sum});
  torch::optim::AdamW optimizer(net.parameters(), torch::optim::AdamWOptions(0.05));
  for (int update = 0; update < 4; ++update) {
    accumulate(net, ddp, *joined.data, update, 2,
               [&] { update % 2 == 0 ? optimizer.zero_grad(false) : net.zero_grad(false); });
    optimizer.step();
  }
  DEMAND(largest_difference(net, alone) < 1e-12);
  return 0;
}

/// Rank 1 is killed by itself between two buckets of backward.
int dies_in_backward(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Net net(3);
  DistributedDataParallel ddp(net, *joined.data, {.bucket_bytes = 256, .launch = LaunchBuckets::when_ready});
  int reduced = 0;
  joined.data->set_observer([&](const CollectiveRecord& record) {
    if (record.gradients && ++reduced == 2 && rank.rank == 1) ::raise(SIGKILL);
  });
  try {
    loss_with_spare(net, rank.rank).backward();
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
  DEMAND((net.first.grad() - alone.first.grad()).abs().max().item<double>() < 1e-14);
  DEMAND(!net.frozen.grad().defined());
  return 0;
}

/// The buckets go out in the layout's order although this loss finishes the first layer's gradients first.
int fixed_bucket_order(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Communicator& axis = *joined.data;
  Net net(3);
  DistributedDataParallel ddp(net, axis, {.bucket_bytes = 1 << 10, .launch = launch_named(rank.arguments.at(0))});
  std::vector<std::int64_t> sizes;
  axis.set_observer([&](const CollectiveRecord& record) {
    if (record.gradients) sizes.push_back(record.bytes);
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

int refuses_other_models(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  Net net(3, at::kDouble, rank.rank == 1 ? 38 : 37);
  try {
    DistributedDataParallel ddp(net, *joined.data);
  } catch (const std::invalid_argument& error) {
    rank.report(error.what());
    Net same(3);
    DistributedDataParallel ddp(same, *joined.data);  // the axis is as good as before
    return 0;
  }
  return 1;
}

int refuses_other_requires_grad(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  Net net(3);
  if (rank.rank == 1) net.out_bias.requires_grad_(false);
  try {
    DistributedDataParallel ddp(net, *joined.data);
  } catch (const std::invalid_argument& error) {
    rank.report(error.what());
    return 0;
  }
  return 1;
}

int refuses_other_options(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  Net net(3);
  try {
    DistributedDataParallel ddp(net, *joined.data, {.bucket_bytes = rank.rank == 1 ? 512 : 1024});
  } catch (const std::invalid_argument& error) {
    rank.report(error.what());
    return 0;
  }
  return 1;
}

/// A second one on the same module would count gradients twice; after the first is gone it is welcome.
int one_at_a_time(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Net net(3);
  {
    DistributedDataParallel ddp(net, *joined.data);
    bool refused = false;
    try {
      DistributedDataParallel second(net, *joined.data);
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    DEMAND(refused);
  }
  DistributedDataParallel ddp(net, *joined.data, {.op = ReduceOp::sum});
  net.out.sum().backward();
  ddp.finish();
  DEMAND(net.out.grad().max().item<double>() == rank.world);
  return 0;
}

}  // namespace

class TestDataParallel : public QObject {
  Q_OBJECT

  static void two_ranks(const std::string& body) { ACCRUE_ALL_RANKS_OK(RankGroup(body, 2).finish(60s)); }

  static void launches() {
    QTest::addColumn<QString>("launch");
    QTest::newRow("at finish") << QStringLiteral("at_finish");
    QTest::newRow("when ready") << QStringLiteral("when_ready");
  }
  static void launched(const std::string& body) {
    QFETCH(QString, launch);
    ACCRUE_ALL_RANKS_OK(RankGroup(body, 2, {.arguments = {launch.toStdString()}}).finish(60s));
  }

 private Q_SLOTS:
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

  void the_mean_divides_by_the_ranks() { two_ranks("means_over_ranks"); }
  void no_sync_may_cover_backward_alone() { two_ranks("no_sync_around_backward"); }
  void several_backwards_add_up_before_one_finish() { two_ranks("several_backwards"); }

  void gradients_may_be_dropped_or_assigned() { two_ranks("user_drops_gradients"); }

  void zeroed_gradients_stay_in_place() {
    const auto outcomes = RankGroup("user_zeroes_gradients", 2).finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    for (const auto& each : outcomes) QVERIFY2(each.errors.empty(), each.errors.c_str());
  }

  void tied_weights_have_one_gradient_and_frozen_ones_none() { two_ranks("tied_and_frozen_weights"); }
  void buckets_are_reduced_in_fixed_order_data() { launches(); }
  void buckets_are_reduced_in_fixed_order() { launched("fixed_bucket_order"); }
  void a_killed_rank_ends_backward_with_a_comm_error() {
    RankGroup ranks("dies_in_backward", 2);
    QVERIFY(ranks.wait_for_end(0, 60s));
    const auto outcomes = ranks.finish(10s);
    QVERIFY2(outcomes[0].ok(), outcomes[0].text().c_str());
    QVERIFY2(
        outcomes[0].lines.at(0).find("rank 1 (pid " + std::to_string(ranks.pid(1)) + ") ended") != std::string::npos,
        outcomes[0].text().c_str());
    QCOMPARE(outcomes[1].signal, SIGKILL);
  }

  void names_the_parameter_that_differs_between_ranks_data() {
    QTest::addColumn<QString>("backend");
    QTest::newRow("shm") << QStringLiteral("shm");
    QTest::newRow("gloo") << QStringLiteral("gloo");
  }
  void names_the_parameter_that_differs_between_ranks() {
    QFETCH(QString, backend);
    const auto outcomes = RankGroup("refuses_other_models", 2, {.arguments = {backend.toStdString()}}).finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    QVERIFY2(outcomes[0].lines.at(0).find("in [37, 5] Double") != std::string::npos, outcomes[0].text().c_str());
    QVERIFY2(outcomes[1].lines.at(0).find("in [38, 5] Double") != std::string::npos, outcomes[1].text().c_str());
  }

  void names_the_parameter_whose_requires_grad_differs_data() { names_the_parameter_that_differs_between_ranks_data(); }
  void names_the_parameter_whose_requires_grad_differs() {
    QFETCH(QString, backend);
    const auto outcomes =
        RankGroup("refuses_other_requires_grad", 2, {.arguments = {backend.toStdString()}}).finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    for (const auto& each : outcomes)
      QVERIFY2(each.lines.at(0).find("out_bias [3] Double") != std::string::npos, each.text().c_str());
  }
  void says_that_options_differ_between_ranks_data() { names_the_parameter_that_differs_between_ranks_data(); }
  void says_that_options_differ_between_ranks() {
    QFETCH(QString, backend);
    const auto outcomes = RankGroup("refuses_other_options", 2, {.arguments = {backend.toStdString()}}).finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    QVERIFY2(outcomes[0].lines.at(0).find("bucket_bytes 1024") != std::string::npos, outcomes[0].text().c_str());
  }

  void one_wrapper_per_module() { two_ranks("one_at_a_time"); }
};

ACCRUE_RANK_TEST_MAIN(TestDataParallel, {{"equals_one_process", equals_one_process},
                                         {"means_over_ranks", means_over_ranks},
                                         {"no_sync_around_backward", no_sync_around_backward},
                                         {"several_backwards", several_backwards},
                                         {"user_drops_gradients", user_drops_gradients},
                                         {"user_zeroes_gradients", user_zeroes_gradients},
                                         {"dies_in_backward", dies_in_backward},
                                         {"tied_and_frozen_weights", tied_and_frozen_weights},
                                         {"fixed_bucket_order", fixed_bucket_order},
                                         {"refuses_other_models", refuses_other_models},
                                         {"refuses_other_requires_grad", refuses_other_requires_grad},
                                         {"refuses_other_options", refuses_other_options},
                                         {"one_at_a_time", one_at_a_time}})

}  // namespace test_data_parallel
#include "test_data_parallel.moc"
