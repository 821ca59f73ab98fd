// SPDX-License-Identifier: Apache-2.0
// Compensated sums (K16) through each system's own loop: every window is as exact as the first, regardless of who
// clears the gradients and however.
#include <torch/optim/sgd.h>

#include <QTest>

#include <cmath>

#include "accrue/accumulation/accelerate/accelerator.h"
#include "accrue/accumulation/llm.h"
#include "accrue/accumulation/mmengine/optim_wrapper.h"
#include "accrue/comm/rendezvous.h"
#include "accrue/parallel/distributed_data_parallel.h"
#include "support/test_program.h"

namespace test_compensated_sums {

using namespace accrue;

namespace {

constexpr std::int64_t steps = 3001;
const DataParallelOptions compensated{.accumulation = AccumulationDtype::float32_compensated};

/// loss = w * share of the micro-step: a large one and then 3000, each of which float32 rounds off beside it.
struct Weight : torch::nn::Module {
  Weight() : w(register_parameter("w", torch::zeros({1}))) {}
  at::Tensor loss(std::int64_t micro_step) const { return (w * (micro_step == 0 ? 1.0 : 2e-8)).sum(); }
  at::Tensor w;
};

struct Alone {
  std::unique_ptr<Communicator> axis = single_communicator();
  Weight model;
  torch::optim::SGD sgd{model.parameters(), torch::optim::SGDOptions(1.0)};
};

double exact() {
  return (1.0 + static_cast<double>(steps - 1) * 2e-8) / static_cast<double>(steps);
}

void check(const at::Tensor& gradient) {
  const double relative = std::abs(gradient.item<double>() / exact() - 1.0);
  QVERIFY2(relative < 2e-7, QByteArray::number(relative));
}

}  // namespace

class TestCompensatedSums : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_llm_wrapper_clears_in_place() {
    Alone alone;
    auto& [axis, model, sgd] = alone;
    DistributedDataParallel ddp(model, *axis, compensated);
    llm::GradientAccumulationOptimizer optimizer(sgd, &ddp, steps);
    for (int window = 0; window < 3; ++window) {
      for (std::int64_t i = 0; i < steps; ++i) {
        optimizer.zero_grad();
        optimizer.backward(model.loss(i));
        if (i + 1 == steps) check(model.w.grad());
        optimizer.step();
      }
    }
  }

  void an_accelerator_clears_after_the_step() {
    Alone alone;
    auto& [axis, model, sgd] = alone;
    accelerate::Accelerator accelerator({.gradient_accumulation_steps = steps, .data_parallel = compensated}, *axis);
    accelerator.prepare(model);
    accelerate::AcceleratedOptimizer& optimizer = accelerator.prepare(sgd);
    for (int window = 0; window < 3; ++window) {
      const double before = model.w.item<double>();
      for (std::int64_t i = 0; i < steps; ++i) {
        const auto scope = accelerator.accumulate(model);
        accelerator.backward(model.loss(i));
        if (i + 1 == steps) check(model.w.grad());
        optimizer.step();
        optimizer.zero_grad();
      }
      QVERIFY2(model.w.item<double>() < before, "the model was reached");
    }
  }

  void mmengines_wrapper_clears_by_itself() {
    Alone alone;
    auto& [axis, model, sgd] = alone;
    DistributedDataParallel ddp(model, *axis, compensated);
    mmengine::OptimWrapper wrapper(sgd, {.accumulative_counts = steps, .sync = &ddp});
    wrapper.initialize_count_status(model, 0, 3 * steps);
    for (std::int64_t i = 0; i < 3 * steps; ++i) {
      const double before = model.w.item<double>();
      if (wrapper.update_params(model.loss(i % steps)) != StepOutcome::updated) continue;
      const double moved = before - model.w.item<double>();
      QVERIFY2(std::abs(moved / exact() - 1.0) < 1e-3, QByteArray::number(moved));
    }
  }

  void dropped_gradients_drop_what_was_rounded_off_with_them() {
    const auto axis = single_communicator();
    Weight model;
    DistributedDataParallel ddp(model, *axis, compensated);
    for (int window = 0; window < 3; ++window) {
      for (std::int64_t i = 0; i < steps; ++i) (model.loss(i) / steps).backward();
      check(model.w.grad());
      model.zero_grad(/*set_to_none=*/window == 0);
    }
  }

  void the_module_is_free_again_after_its_wrapper() {
    const auto axis = single_communicator();
    Weight model;
    { DistributedDataParallel ddp(model, *axis, compensated); }
    model.zero_grad();
    for (std::int64_t i = 0; i < 3; ++i) model.loss(0).backward();
    QCOMPARE(model.w.grad().item<double>(), 3.0);
    DistributedDataParallel again(model, *axis);
  }
};

ACCRUE_TEST_MAIN(TestCompensatedSums)

}  // namespace test_compensated_sums
#include "test_compensated_sums.moc"
