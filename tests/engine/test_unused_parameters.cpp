// SPDX-License-Identifier: Apache-2.0
// A parameter that no backward of a window reached has no gradient at the step, whichever system's classes take it:
// AdamW neither decays it nor moves its moments. The reference is LibTorch's AdamW over gradients set by hand.
#include <ATen/ops/ones.h>
#include <torch/nn/module.h>
#include <torch/optim/adamw.h>

#include <QTest>
#include <functional>
#include <optional>

#include "accrue/accumulation/accelerate/accelerator.h"
#include "accrue/accumulation/colossalai.h"
#include "accrue/accumulation/llm.h"
#include "accrue/accumulation/mmengine/colossalai_optim_wrapper.h"
#include "accrue/comm/rendezvous.h"
#include "accrue/parallel/distributed_data_parallel.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_unused_parameters {

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr int updates = 5;

/// Three weights of 1, and AdamW over them.
struct Ones : torch::nn::Module {
  Ones() {
    always = register_parameter("always", at::ones({3}, at::kDouble));
    once = register_parameter("once", at::ones({3}, at::kDouble));
    never = register_parameter("never", at::ones({3}, at::kDouble));
  }
  /// Of micro-step m = 0, 1, ...: the gradient of each weight that is used is 1.
  at::Tensor loss(std::int64_t m) const { return m == 0 ? always.sum() + once.sum() : always.sum(); }
  at::Tensor always, once, never;
};

torch::optim::AdamW adamw_over(const Ones& ones) {
  return torch::optim::AdamW({ones.always, ones.once, ones.never}, torch::optim::AdamWOptions(0.1).weight_decay(0.1));
}

/// A training: the weights, their optimizer, N, and a reducer if the row has one.
struct Training {
  Ones& ones;
  torch::optim::AdamW& adamw;
  std::int64_t steps;
  Communicator& axis;
  DistributedDataParallel* ddp;
};
using Train = std::function<void(const Training&)>;

/// A loop that its optimizer alone drives.
void train_by(const Training& training, BaseOptimizer& optimizer) {
  for (std::int64_t m = 0; m < updates * training.steps; ++m) {
    optimizer.zero_grad();
    optimizer.backward(training.ones.loss(m));
    optimizer.step();
  }
}

void train_llm(const Training& training) {
  llm::GradientAccumulationOptimizer optimizer(training.adamw, training.ddp, training.steps);
  train_by(training, optimizer);
}

void train_colossalai(const Training& training) {
  colossalai::GradAccumOptimizer optimizer(training.adamw, training.steps, training.ddp);
  train_by(training, optimizer);
}

void train_accelerate(const Training& training) {
  accelerate::Accelerator accelerator({.gradient_accumulation_steps = training.steps}, training.axis);
  accelerator.prepare(training.ones);
  auto& optimizer = accelerator.prepare(training.adamw);
  for (std::int64_t m = 0; m < updates * training.steps; ++m) {
    const auto scope = accelerator.accumulate(training.ones);
    accelerator.backward(training.ones.loss(m));
    optimizer.step();
    optimizer.zero_grad();
  }
}

void train_wrapper(const Training& training, mmengine::OptimWrapper& wrapper) {
  const std::int64_t micro_steps = updates * training.steps;
  wrapper.initialize_count_status(training.ones, 0, micro_steps);
  for (std::int64_t m = 0; m < micro_steps; ++m)
    mmengine::train_step(wrapper, training.ones, [&] { return training.ones.loss(m); });
}

void train_mmengine(const Training& training) {
  mmengine::OptimWrapper wrapper(training.adamw, {.accumulative_counts = training.steps, .sync = training.ddp});
  train_wrapper(training, wrapper);
}

void train_booster(const Training& training) {
  mmengine::ColossalAIOptimWrapper wrapper(
      training.adamw, mmengine::make_booster(mmengine::torch_ddp_plugin(), *training.ddp), training.steps);
  train_wrapper(training, wrapper);
}

}  // namespace

class TestUnusedParameters : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_unused_parameter_is_left_alone_by_the_step_data() {
    const Rows<Train, bool, std::int64_t> row;
    for (const std::int64_t steps : {1, 2}) {
      const auto add = [&](const char* name, Train train, bool reduced) {
        row(qPrintable(QStringLiteral("%1, N = %2").arg(QLatin1String(name)).arg(steps)), train, reduced, steps);
      };
      add("llm", train_llm, false);
      add("llm over the reducer", train_llm, true);
      add("Colossal-AI", train_colossalai, false);
      add("Colossal-AI over the reducer", train_colossalai, true);
      add("Accelerate", train_accelerate, false);
      add("MMEngine", train_mmengine, false);
      add("MMEngine over the reducer", train_mmengine, true);
      add("MMEngine over a booster", train_booster, true);
    }
  }
  void an_unused_parameter_is_left_alone_by_the_step() {
    const auto [train, reduced, steps] = current_row<Train, bool, std::int64_t>();
    const auto axis = single_communicator();
    Ones ones;
    torch::optim::AdamW adamw = adamw_over(ones);
    std::optional<DistributedDataParallel> ddp;
    if (reduced) ddp.emplace(ones, *axis);
    train({.ones = ones, .adamw = adamw, .steps = steps, .axis = *axis, .ddp = ddp ? &*ddp : nullptr});

    Ones by_hand;
    torch::optim::AdamW reference = adamw_over(by_hand);
    for (int update = 0; update < updates; ++update) {
      by_hand.always.mutable_grad() = at::ones({3}, at::kDouble);
      by_hand.once.mutable_grad() =
          update == 0 ? at::ones({3}, at::kDouble) / static_cast<double>(steps) : at::Tensor();
      reference.step();
    }
    QVERIFY((ones.never == 1.0).all().item<bool>());
    QVERIFY((ones.once - by_hand.once).abs().max().item<double>() < 1e-15);
    QVERIFY((ones.always - by_hand.always).abs().max().item<double>() < 1e-15);
    // 1 less the decay of 0.1 * 0.1, less the rate: the first step of AdamW has the size of the rate.
    QVERIFY((ones.once - 0.89).abs().max().item<double>() < 1e-7);
  }
};

ACCRUE_TEST_MAIN(TestUnusedParameters)

}  // namespace test_unused_parameters
#include "test_unused_parameters.moc"
