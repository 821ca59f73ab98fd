// SPDX-License-Identifier: Apache-2.0
// Colossal-AI's training loop with gradient accumulation, in C++. Beside the original, line for line:
//
//   optimizer, loader, handlers, lr_scheduler = accumulate_gradient(
//       model, optimizer, dataloader, accumulate_size=4, gradient_handlers=None, lr_scheduler=lr_scheduler)
//   engine = Engine(model, optimizer, gradient_handlers=handlers, clip_grad_norm=1000.0)
//   for batch in loader:
//       engine.zero_grad()
//       engine.backward(criterion(model, batch))
//       engine.step()
//       lr_scheduler.step()
//
// Batch b = 1..10 is the sample x = b, y = 2b. Batches 9 and 10 of every epoch are dropped.
#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <numeric>
#include <vector>

#include "accrue/accumulation/colossalai.h"

namespace colossalai = accrue::colossalai;

namespace {

torch::nn::Linear line_through_zero() {
  torch::nn::Linear model(torch::nn::LinearOptions(1, 1).bias(false));
  model->to(at::kDouble);
  const at::NoGradGuard no_grad;
  model->weight.zero_();
  return model;
}

at::Tensor criterion(torch::nn::Linear& model, double b) {
  const at::Tensor x = at::full({1, 1}, b, at::kDouble);
  return (model(x) - 2.0 * x).square().mean();
}

}  // namespace

int main() {
  std::vector<int> batches(10);
  std::iota(batches.begin(), batches.end(), 1);
  auto dataloader = accrue::source_of(batches, 10);

  auto model = line_through_zero();
  torch::optim::SGD sgd(model->parameters(), 0.005);
  auto constant = std::make_shared<accrue::LambdaLR>(sgd, [](std::int64_t) { return 1.0; });

  auto [optimizer, loader, handlers, lr_scheduler] =
      colossalai::accumulate_gradient(nullptr, sgd, dataloader, 4, {}, constant);
  colossalai::Engine engine(optimizer, handlers, 1000.0);

  std::printf(
      "%lld updates an epoch to size schedules with, %lld batches dropped\n",
      static_cast<long long>(colossalai::GradAccumLrSchedulerByStep::compute_effective_steps_per_epoch(dataloader, 4)),
      static_cast<long long>(loader->dropped()));
  int updates = 0;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    for (const int b : *loader) {
      engine.zero_grad();
      engine.backward(criterion(model, b));
      if (engine.step() == accrue::StepOutcome::updated) ++updates;
      lr_scheduler->step();
    }
    std::printf("epoch %d: w = %.12g, updates = %d, inner steps of the schedule = %lld\n", epoch,
                model->weight.item<double>(), updates, static_cast<long long>(constant->position()));
  }
  return 0;
}
