// SPDX-License-Identifier: Apache-2.0
// State of every rank after a window: gradients of exactly the used parameters, buffers of rank 0, means that 16 bits
// can hold; and windows that do not end properly.
#include <torch/csrc/autograd/custom_function.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <QTest>

#include "support/rank_cases.h"
#include "support/rank_checks.h"
#include "support/rank_net.h"
#include "support/refusals.h"

namespace test_data_parallel_window {

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

/// A parameter that no loss reaches, and one that only rank 0's loss reaches.
int unused_parameters(RankContext& rank) {
  RankNet of(rank, {.bucket_bytes = 128, .op = ReduceOp::sum, .launch = launch_of(rank)});
  auto& [joined, axis, net, ddp] = of;
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
  DistributedDataParallel ddp(net, *joined.data, {.launch = launch_of(rank)});
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
  RankNet of(rank);
  auto& [joined, axis, net, ddp] = of;
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
  DistributedDataParallel ddp(net, *joined.data, {.bucket_bytes = 512, .op = ReduceOp::sum, .launch = launch_of(rank)});
  DEMAND(ddp.arenas() == 2);
  DEMAND(ddp.flat_gradients(0).scalar_type() == at::kDouble && ddp.flat_gradients(1).scalar_type() == at::kFloat);
  loss(net, rank.rank).backward();
  ddp.finish();
  Net alone = make();
  (loss(alone, 0) + loss(alone, 1)).backward();
  DEMAND(apart(net.in.grad(), alone.in.grad()) < 1e-14);
  DEMAND(apart(net.out_bias.grad(), alone.out_bias.grad()) < 1e-6);
  DEMAND(!net.spare.grad().defined());
  return 0;
}

/// 40000 twice is more than float16 can hold; its mean is not.
int means_of_sixteen_bits(RankContext& rank) {
  RankNet of(rank, {.accumulation = AccumulationDtype::parameter}, 3, at::kHalf);
  auto& [joined, axis, net, ddp] = of;
  (net.spare * at::full({11}, 40000.0, at::kHalf)).sum().backward();
  ddp.finish();
  DEMAND(net.spare.grad().scalar_type() == at::kHalf);
  DEMAND(net.spare.grad().min().item<double>() == 40000 && net.spare.grad().max().item<double>() == 40000);
  return 0;
}

/// As Python's DDP with broadcast_buffers: before the forward of each micro-step that reduces, buffers are rank 0's.
/// Each forward adds rank + 1 to `count`, so that one can tell whose value it was built on.
int buffers_follow_rank_0(RankContext& rank) {
  RankNet of(rank, {}, 0);
  auto& [joined, axis, net, ddp] = of;
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
  RankNet of(rank, {.broadcast_buffers = false}, 0);
  auto& [joined, axis, net, ddp] = of;
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
  RankNet of(rank, {.op = ReduceOp::sum, .launch = LaunchBuckets::when_ready});
  auto& [joined, axis, net, ddp] = of;
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1));
  for (const bool by_optimizer : {false, true}) {
    const std::string error = error_of([&net = net] {
      at::linear(Breaks::apply(at::tanh(at::linear(batch_x(0, at::kDouble), net.in))), net.out).sum().backward();
    });
    DEMAND(contains(error, "broken") && net.out.grad().defined());
    if (by_optimizer)
      optimizer.zero_grad();
    else
      ddp.zero_grad();
    loss_with_spare(net, rank.rank).backward();
    ddp.finish();
    Net alone(3);
    (loss_of(alone, 0, 0, 1) + loss_of(alone, 0, 1, 1)).backward();
    DEMAND(apart(net.out.grad(), alone.out.grad()) < 1e-13);
    ddp.zero_grad();
  }
  return 0;
}

int says_that_finish_was_forgotten(RankContext& rank) {
  RankNet of(rank);
  auto& [joined, axis, net, ddp] = of;
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1));
  const auto says = [](auto&& call) { return contains(error_of(call), "call finish()"); };
  net.out.sum().backward();
  ddp.zero_grad();  // an abandoned window is not an error
  net.out.sum().backward();
  optimizer.step();
  DEMAND(says([&ddp = ddp] { ddp.zero_grad(); }));
  optimizer.zero_grad();
  DEMAND(says([&net = net] { net.out.sum().backward(); }));
  // After the last window there is nothing but the destructor to say it.
  for (const bool finishes : {true, false}) {
    struct : c10::WarningHandler {
      void process(const c10::Warning& warning) override { text += warning.msg(); }
      std::string text;
    } noted;
    const c10::WarningUtils::WarningHandlerGuard guard(&noted);
    {
      Net last(3);
      DistributedDataParallel reducer(last, axis);
      torch::optim::SGD sgd(last.parameters(), torch::optim::SGDOptions(0.1));
      last.out.sum().backward();
      if (finishes) reducer.finish();
      sgd.step();
    }
    DEMAND(contains(noted.text, "call finish()") != finishes);
  }
  return 0;
}

const std::vector<std::string> launches = {"at_finish", "when_ready"};
const RankCases cases = {
    {"a parameter that no rank reached has no gradient", unused_parameters, launches},
    {"an unused parameter is left alone by the step", unused_parameters_are_left_alone, launches, {1, 2, 3}},
    {"a gradient of zero is one on all ranks", zero_gradients_are_gradients},
    {"models of mixed floating types are taken", mixed_floating_types, launches},
    {"a mean of 16-bit sums divides first", means_of_sixteen_bits},
    {"buffers follow rank 0 before a synchronised forward", buffers_follow_rank_0},
    {"buffers are left alone where asked for", keeps_buffers_apart},
    {"when_ready recovers from a backward that threw", recovers_from_a_broken_backward},
    {"a forgotten finish is found and said", says_that_finish_was_forgotten}};

}  // namespace

class TestWindowEnd : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void on_ranks_data() { rank_rows(cases); }
  void on_ranks() { run_rank_row(); }
};

ACCRUE_RANK_TEST_MAIN(TestWindowEnd, (bodies_of(cases)))

}  // namespace test_data_parallel_window
#include "test_data_parallel_window.moc"
