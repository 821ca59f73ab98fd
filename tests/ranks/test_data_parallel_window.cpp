// SPDX-License-Identifier: Apache-2.0
// What a window's end leaves on every rank: gradients of what was used and of nothing else, buffers of rank 0, means
// that 16 bits can hold; and what happens where a window does not end as it should.
#include <torch/csrc/autograd/custom_function.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <QtTest/QTest>

#include "support/joined_rank.h"
#include "support/rank_checks.h"
#include "support/small_net.h"

namespace test_data_parallel_window {

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

/// A parameter that no loss reaches, and one that only rank 0's loss reaches.
int unused_parameters(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Net net(3);
  DistributedDataParallel ddp(net, *joined.data,
                              {.bucket_bytes = 128, .op = ReduceOp::sum, .launch = launch_named(rank.arguments.at(0))});
  at::Tensor loss = net.out.sum();
  if (rank.rank == 0) loss = loss + 5 * net.in_bias.sum();
  loss.backward();
  ddp.finish();
  DEMAND(!net.spare.grad().defined());
  DEMAND(!net.in.grad().defined());
  DEMAND(net.in_bias.grad().min().item<double>() == 5);
  DEMAND(net.out.grad().max().item<double>() == 2);
  return 0;
}

/// AdamW(0.1, weight decay 0.1), five updates: PyTorch leaves a parameter that is never used at 1, and one that is used
/// in the first update only at 1 * (1 - 0.1 * 0.1) - 0.1 = 0.89.
int unused_parameters_are_left_alone(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  struct Ones : torch::nn::Module {
    Ones() {
      for (auto* each : {&used, &once, &never})
        *each = register_parameter("p" + std::to_string(parameters().size()), at::ones({3}, at::kDouble));
    }
    at::Tensor used, once, never;
  } net;
  DistributedDataParallel ddp(net, *joined.data, {.launch = launch_named(rank.arguments.at(0))});
  torch::optim::AdamW optimizer(net.parameters(), torch::optim::AdamWOptions(0.1).weight_decay(0.1));
  for (int update = 0; update < 5; ++update) {
    at::Tensor loss = net.used.sum();
    if (update == 0 && rank.rank == 0) loss = loss + net.once.sum();  // of one rank, and that counts for all
    loss.backward();
    ddp.finish();
    optimizer.step();
    if (update % 2 == 0)
      ddp.zero_grad();
    else
      optimizer.zero_grad();
  }
  DEMAND((net.never - 1.0).abs().max().item<double>() == 0);
  DEMAND((net.once - 0.89).abs().max().item<double>() < 1e-7);
  DEMAND(net.used.max().item<double>() < 0.6);
  return 0;
}

/// A gradient that is zero is a gradient: the weight decays on every rank, although only rank 0 used the parameter.
int zero_gradients_are_gradients(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Net net(3);
  DistributedDataParallel ddp(net, *joined.data);
  (rank.rank == 0 ? net.out.sum() + 0 * net.spare.sum() : net.out.sum()).backward();
  ddp.finish();
  DEMAND(net.spare.grad().defined() && net.spare.grad().abs().max().item<double>() == 0);
  DEMAND(!net.in.grad().defined());
  return 0;
}

/// One arena for float64, one for float32, reduced together; the gradients are those of one process.
int mixed_floating_types(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  const auto make = [] {
    Net net(3);
    net.out_bias.set_data(net.out_bias.detach().to(at::kFloat));
    return net;
  };
  const auto loss = [](Net& net, std::int64_t sample) {
    const at::Tensor x = batch_x(0, at::kDouble).narrow(0, sample, 1);
    return (at::linear(at::tanh(at::linear(x, net.in, net.in_bias)), net.out) + net.out_bias).square().sum();
  };
  Net net = make();
  DistributedDataParallel ddp(net, *joined.data,
                              {.bucket_bytes = 512, .op = ReduceOp::sum, .launch = launch_named(rank.arguments.at(0))});
  DEMAND(ddp.arenas() == 2);
  DEMAND(ddp.flat_gradients(0).scalar_type() == at::kDouble && ddp.flat_gradients(1).scalar_type() == at::kFloat);
  loss(net, rank.rank).backward();
  ddp.finish();
  Net alone = make();
  (loss(alone, 0) + loss(alone, 1)).backward();
  DEMAND((net.in.grad() - alone.in.grad()).abs().max().item<double>() < 1e-14);
  DEMAND((net.out_bias.grad() - alone.out_bias.grad()).abs().max().item<double>() < 1e-6);
  DEMAND(!net.spare.grad().defined());
  return 0;
}

/// 40000 twice is more than float16 can hold; its mean is not.
int means_of_sixteen_bits(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Net net(3, at::kHalf);
  DistributedDataParallel ddp(net, *joined.data, {.accumulation = AccumulationDtype::parameter});
  (net.spare * at::full({11}, 40000.0, at::kHalf)).sum().backward();
  ddp.finish();
  DEMAND(net.spare.grad().scalar_type() == at::kHalf);
  DEMAND(net.spare.grad().min().item<double>() == 40000 && net.spare.grad().max().item<double>() == 40000);
  return 0;
}

/// As Python's DDP with broadcast_buffers: before the forward of each micro-step that reduces, buffers are rank 0's.
/// Each forward adds rank + 1 to `count`, so that one can tell whose value it was built on.
int buffers_follow_rank_0(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Net net(0);
  DistributedDataParallel ddp(net, *joined.data);
  const auto micro_step = [&] {
    net.count += rank.rank + 1;
    net.out.sum().backward();
  };
  {
    const auto quiet = ddp.no_sync();
    ddp.before_forward();  // does nothing: this one does not reduce
    micro_step();
    DEMAND(net.count.item<std::int64_t>() == rank.rank + 1);
  }
  ddp.before_forward();
  DEMAND(net.count.item<std::int64_t>() == 1);
  micro_step();
  ddp.finish();
  DEMAND(net.count.item<std::int64_t>() == 2 + rank.rank);  // as torch leaves it
  micro_step();
  ddp.finish();  // a loop that never calls before_forward() is brought together here
  DEMAND(net.count.item<std::int64_t>() == 3);
  return 0;
}

int keeps_buffers_apart(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Net net(0);
  DistributedDataParallel ddp(net, *joined.data, {.broadcast_buffers = false});
  net.count += rank.rank;
  ddp.before_forward();
  net.out.sum().backward();
  ddp.finish();
  DEMAND(net.count.item<std::int64_t>() == rank.rank);
  return 0;
}

/// Throws in its backward.
struct Breaks : torch::autograd::Function<Breaks> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list) {
    throw std::runtime_error("broken");
  }
};

/// The broken backward delivers the last layer's gradient before it throws; the window that follows is a whole one.
int recovers_from_a_broken_backward(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Net net(3);
  DistributedDataParallel ddp(net, *joined.data, {.op = ReduceOp::sum, .launch = LaunchBuckets::when_ready});
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1));
  for (const bool by_optimizer : {false, true}) {
    bool thrown = false;
    try {
      at::linear(Breaks::apply(at::tanh(at::linear(batch_x(0, at::kDouble), net.in))), net.out).sum().backward();
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    DEMAND(thrown && net.out.grad().defined());
    if (by_optimizer)
      optimizer.zero_grad();
    else
      ddp.zero_grad();
    loss_with_spare(net, rank.rank).backward();
    ddp.finish();
    Net alone(3);
    (loss_of(alone, 0, 0, 1) + loss_of(alone, 0, 1, 1)).backward();
    DEMAND((net.out.grad() - alone.out.grad()).abs().max().item<double>() < 1e-13);
    ddp.zero_grad();
  }
  return 0;
}

int says_that_finish_was_forgotten(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  Net net(3);
  DistributedDataParallel ddp(net, *joined.data);
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1));
  const auto says = [](auto&& call) {
    try {
      call();
    } catch (const std::logic_error& error) {
      return std::string(error.what()).find("call finish()") != std::string::npos;
    }
    return false;
  };
  net.out.sum().backward();
  ddp.zero_grad();  // a window that is given up is nobody's mistake
  net.out.sum().backward();
  optimizer.step();
  DEMAND(says([&] { ddp.zero_grad(); }));
  optimizer.zero_grad();
  DEMAND(says([&] { net.out.sum().backward(); }));
  return 0;
}

}  // namespace

class TestWindowEnd : public QObject {
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
  void a_parameter_that_no_rank_reached_has_no_gradient_data() { launches(); }
  void a_parameter_that_no_rank_reached_has_no_gradient() { launched("unused_parameters"); }
  void an_unused_parameter_is_left_alone_by_the_step_data() {
    QTest::addColumn<int>("world");
    QTest::addColumn<QString>("launch");
    for (const int world : {1, 2, 3})
      for (const char* launch : {"at_finish", "when_ready"})
        QTest::addRow("%d ranks, %s", world, launch) << world << QString::fromLatin1(launch);
  }
  void an_unused_parameter_is_left_alone_by_the_step() {
    QFETCH(int, world);
    QFETCH(QString, launch);
    RankGroup ranks("unused_parameters_are_left_alone", world, {.arguments = {launch.toStdString()}});
    ACCRUE_ALL_RANKS_OK(ranks.finish(60s));
  }
  void a_gradient_of_zero_is_one_on_all_ranks() { two_ranks("zero_gradients_are_gradients"); }
  void models_of_mixed_floating_types_are_taken_data() { launches(); }
  void models_of_mixed_floating_types_are_taken() { launched("mixed_floating_types"); }
  void a_mean_of_16_bit_sums_divides_first() { two_ranks("means_of_sixteen_bits"); }
  void buffers_follow_rank_0_before_a_synchronised_forward() { two_ranks("buffers_follow_rank_0"); }
  void buffers_are_left_alone_where_asked_for() { two_ranks("keeps_buffers_apart"); }
  void when_ready_recovers_from_a_backward_that_threw() { two_ranks("recovers_from_a_broken_backward"); }
  void a_forgotten_finish_is_found_and_said() { two_ranks("says_that_finish_was_forgotten"); }
};

ACCRUE_RANK_TEST_MAIN(TestWindowEnd, {{"unused_parameters", unused_parameters},
                                      {"unused_parameters_are_left_alone", unused_parameters_are_left_alone},
                                      {"zero_gradients_are_gradients", zero_gradients_are_gradients},
                                      {"mixed_floating_types", mixed_floating_types},
                                      {"means_of_sixteen_bits", means_of_sixteen_bits},
                                      {"buffers_follow_rank_0", buffers_follow_rank_0},
                                      {"keeps_buffers_apart", keeps_buffers_apart},
                                      {"recovers_from_a_broken_backward", recovers_from_a_broken_backward},
                                      {"says_that_finish_was_forgotten", says_that_finish_was_forgotten}})

}  // namespace test_data_parallel_window
#include "test_data_parallel_window.moc"
