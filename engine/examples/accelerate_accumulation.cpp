// SPDX-License-Identifier: Apache-2.0
// Accelerate's documented sample: eight points in batches of two, accumulated over four, against one step over all
// eight at once. Both end at 2.04000. Source: Hugging Face Accelerate, "Performing gradient accumulation".
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include <cstdio>

#include "accrue/accumulation/accelerate/accelerator.h"
#include "accrue/comm/rendezvous.h"

using namespace accrue;
using namespace accrue::accelerate;

struct SimpleLinearModel : torch::nn::Module {
  SimpleLinearModel() { weight = register_parameter("weight", at::zeros({1, 1})); }
  at::Tensor forward(const at::Tensor& inputs) { return inputs.matmul(weight); }
  at::Tensor weight;
};

struct Batch {
  at::Tensor inputs, labels;
};

int main() {
  const at::Tensor x = at::tensor({1.F, 2.F, 3.F, 4.F, 5.F, 6.F, 7.F, 8.F}).view({-1, 1});
  const at::Tensor y = 2 * x;
  const std::int64_t steps = 4;

  SimpleLinearModel model, clone;
  torch::optim::SGD sgd(model.parameters(), 0.02), clone_sgd(clone.parameters(), 0.02);

  const auto axis = single_communicator();
  Accelerator accelerator({.gradient_accumulation_steps = steps}, *axis);
  accelerator.prepare(model);
  auto& optimizer = accelerator.prepare(sgd);
  const auto rows = [&](const std::vector<std::int64_t>& samples) {
    const at::Tensor index = at::tensor(samples);
    return Batch{x.index_select(0, index), y.index_select(0, index)};
  };
  auto loader = accelerator.prepare(map_loader(x.size(0), rows, {.batch_size = x.size(0) / steps}));

  std::printf("initial model weight is %.5f\n", model.weight.item<double>());
  for (auto& [inputs, labels] : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(at::mse_loss(model.forward(inputs), labels));
    optimizer.step();
    optimizer.zero_grad();
  }

  at::mse_loss(clone.forward(x), y).backward();
  clone_sgd.step();

  std::printf("w/ accumulation, the final model weight is %.5f\n", model.weight.item<double>());
  std::printf("w/o accumulation, the final model weight is %.5f\n", clone.weight.item<double>());
  return 0;
}
