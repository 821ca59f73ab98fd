// SPDX-License-Identifier: Apache-2.0
// The training loop of llm-pytorch with gradient accumulation, in C++. Beside the original, line for line:
//
//   optimizer, scheduler = accumulation.initialize(model, optimizer, scheduler, accumulation_steps=4)
//   for batch in batches:
//       optimizer.zero_grad()
//       optimizer.backward(loss_fn(model, batch))
//       optimizer.step()
//       scheduler.step()
//
// Batch b = 1..10 is the sample x = b, y = 2b. A group runs across the end of an epoch; the last one waits in the
// gradient.
#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstdio>
#include <set>

#include "accrue/accumulation/llm.h"

namespace {

torch::nn::Linear line_through_zero() {
  torch::nn::Linear model(torch::nn::LinearOptions(1, 1).bias(false));
  model->to(at::kDouble);
  const at::NoGradGuard no_grad;
  model->weight.zero_();
  return model;
}

at::Tensor loss_of(torch::nn::Linear& model, double b) {
  const at::Tensor x = at::full({1, 1}, b, at::kDouble);
  return (model(x) - 2.0 * x).square().mean();
}

void train_ten_batches(int epochs) {
  auto model = line_through_zero();
  torch::optim::SGD sgd(model->parameters(), 0.005);
  accrue::LambdaLR constant(sgd, [](std::int64_t) { return 1.0; });
  auto [optimizer, scheduler] = accrue::llm::initialize(nullptr, sgd, constant, 4);
  int updates = 0;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    for (int b = 1; b <= 10; ++b) {
      optimizer->zero_grad();
      optimizer->backward(loss_of(model, b));
      if (optimizer->step() == accrue::StepOutcome::updated) ++updates;
      scheduler->step();
    }
    optimizer->zero_grad();
    const at::Tensor left = model->weight.grad();  // none if the epoch ends with an update
    std::printf("epoch %d: w = %.12g, updates = %d, left in the gradient = %.12g\n", epoch,
                model->weight.item<double>(), updates, left.defined() ? left.item<double>() : 0.0);
  }
}

/// 99 micro-steps in groups of ten with a rate that falls by a tenth at each step of the inner scheduler.
void count_rates() {
  auto model = line_through_zero();
  torch::optim::Adam adam(model->parameters(), 0.1);
  accrue::LambdaLR decay(adam, [](std::int64_t n) { return std::pow(0.9, static_cast<double>(n)); });
  auto [optimizer, scheduler] = accrue::llm::initialize(nullptr, adam, decay, 10);
  std::set<double> rates;
  for (int i = 0; i < 99; ++i) {
    if (optimizer->accumulation_boundary() != (i % 10 == 0)) std::printf("boundary out of place at %d\n", i);
    optimizer->zero_grad();
    optimizer->backward(loss_of(model, 1.0));
    optimizer->step();
    scheduler->step();
    rates.insert(scheduler->get_last_lr().front());
  }
  std::printf("%zu rates, from %.10g to %.10g\n", rates.size(), *rates.rbegin(), *rates.begin());
}

}  // namespace

int main() {
  train_ten_batches(3);
  count_rates();
  return 0;
}
