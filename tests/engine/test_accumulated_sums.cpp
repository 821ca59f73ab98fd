// SPDX-License-Identifier: Apache-2.0
// Sums that the wrappers accumulate: their number types, and all of LibTorch's optimizers.
#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <QTest>
#include <functional>
#include <memory>
#include <optional>

#include "accrue/accumulation/accelerate/gradient_accumulation_plugin.h"
#include "accrue/accumulation/colossalai.h"
#include "accrue/accumulation/llm.h"
#include "accrue/accumulation/mmengine/optim_wrapper.h"
#include "accrue/comm/rendezvous.h"
#include "accrue/parallel/distributed_data_parallel.h"
#include "support/refusals.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_accumulated_sums {

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr std::int64_t steps = 256;

struct Half : torch::nn::Module {
  explicit Half(at::ScalarType type) { w = register_parameter("w", at::zeros({1}, type)); }
  at::Tensor w;
};

/// A wrapper's micro-step: the loss goes in, as it is.
using MicroStep = std::function<void(const at::Tensor& loss)>;
MicroStep micro_step_of(const std::string& system, torch::optim::Optimizer& optimizer, GradSync* sync) {
  const auto backward = [](auto wrapper) { return [wrapper](const at::Tensor& loss) { wrapper->backward(loss); }; };
  if (system == "llm") return backward(std::make_shared<llm::GradientAccumulationOptimizer>(optimizer, sync, steps));
  if (system == "colossalai") return backward(std::make_shared<colossalai::GradAccumOptimizer>(optimizer, steps, sync));
  auto wrapper = std::make_shared<mmengine::OptimWrapper>(
      optimizer, mmengine::OptimWrapperOptions{.accumulative_counts = steps, .sync = sync});
  return [wrapper](const at::Tensor& loss) { wrapper->backward(wrapper->scale_loss(loss)); };
}

std::unique_ptr<torch::optim::Optimizer> optimizer_over(const std::string& name, const at::Tensor& weight) {
  const std::vector<at::Tensor> all{weight};
  if (name == "RMSprop") return std::make_unique<torch::optim::RMSprop>(all, torch::optim::RMSpropOptions(0.125));
  return std::make_unique<torch::optim::Adagrad>(all, torch::optim::AdagradOptions(0.125));
}

}  // namespace

class TestAccumulatedSums : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void half_precision_gradients_accumulate_in_float32_under_a_reducer_data() {
    Rows<std::string, at::ScalarType>();
    for (const char* system : {"llm", "colossalai", "mmengine"})
      for (const at::ScalarType type : {at::kBFloat16, at::kHalf})
        QTest::addRow("%s, %s", system, c10::toString(type)) << std::string(system) << type;
  }
  void half_precision_gradients_accumulate_in_float32_under_a_reducer() {
    const auto [system, type] = current_row<std::string, at::ScalarType>();
    // A large slope and 255 small ones, each of which is lost if the sum has the parameter's own type.
    const double small = type == at::kHalf ? 1.0 / 4096 : 1.0 / 512;
    const auto accumulated = [&](bool reducer) {
      Half model(type);
      torch::optim::SGD sgd({model.w}, torch::optim::SGDOptions(1.0));
      const auto alone = single_communicator();
      std::optional<DistributedDataParallel> ddp;
      if (reducer) ddp.emplace(model, *alone);
      const MicroStep micro_step = micro_step_of(system, sgd, ddp ? &*ddp : nullptr);
      for (std::int64_t i = 0; i < steps; ++i)
        micro_step((model.w * (i == 0 ? 1.0 : small)).sum() * static_cast<double>(steps));
      return model.w.grad().to(at::kDouble).item<double>();
    };
    QCOMPARE(accumulated(true), 1.0 + 255 * small);
    QCOMPARE(accumulated(false), 1.0);
  }

  void an_optimizer_sees_the_mean_of_its_window_data() {
    QTest::addColumn<std::string>("name");
    QTest::newRow("RMSprop") << std::string("RMSprop");
    QTest::newRow("Adagrad") << std::string("Adagrad");
  }
  void an_optimizer_sees_the_mean_of_its_window() {
    QFETCH(std::string, name);
    const at::Tensor start = at::tensor({1.0, -2.0}, at::kDouble),
                     slopes = at::tensor({3.0, 0.5, 1.5, 2.0}, at::kDouble);
    at::Tensor grouped = start.clone().requires_grad_(), whole = start.clone().requires_grad_();
    const auto optimizer = optimizer_over(name, grouped), reference = optimizer_over(name, whole);
    llm::GradientAccumulationOptimizer accumulating(*optimizer, nullptr, 2);
    for (std::int64_t m = 0; m < 4; ++m) {
      accumulating.zero_grad();
      accumulating.backward((grouped * grouped).sum() * slopes[m]);
      QCOMPARE(accumulating.step() == StepOutcome::updated, m % 2 == 1);
      if (m % 2 == 0) continue;
      reference->zero_grad();
      ((whole * whole).sum() * (slopes[m - 1] + slopes[m]) / 2).backward();
      reference->step();
      QVERIFY(at::allclose(grouped, whole, 1e-14, 0.0));
      QVERIFY(!at::equal(grouped, start));
    }
  }

  void more_micro_steps_than_a_window_may_have_are_refused_where_n_alone_ends_it() {
    at::Tensor weight = at::zeros({1}).requires_grad_();
    torch::optim::SGD sgd({weight}, torch::optim::SGDOptions(1.0));
    constexpr std::int64_t many = 100'000'000;
    const auto at_most = [](auto&& call) { return contains(refused(call), "it is at most 1048576"); };
    QVERIFY(at_most([&] { llm::GradientAccumulationOptimizer(sgd, nullptr, many); }));
    QVERIFY(at_most([&] { colossalai::GradAccumOptimizer(sgd, many); }));
    QVERIFY(at_most([&] { mmengine::OptimWrapper(sgd, {.accumulative_counts = many}); }));
    QCOMPARE(accelerate::checked_steps(many), many);  // the loader's end may be all that ends a group
  }
};

ACCRUE_TEST_MAIN(TestAccumulatedSums)

}  // namespace test_accumulated_sums
#include "test_accumulated_sums.moc"
