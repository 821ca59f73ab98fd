// SPDX-License-Identifier: Apache-2.0
// Accelerate's loop for samples of variable size with everything that a real one has: several epochs, a schedule, and a
// last group of an epoch with fewer batches. Every loss is divided by the tokens of its own group, over all ranks.
//   accelerate_token_loop              one rank, batches of four
//   accelerate_token_loop --ranks 2    two ranks, batches of two: the same groups of samples
//
// Source: Hugging Face Accelerate, "Gradient accumulation on training samples of variable size".
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/pad_sequence.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cmath>

#include "accrue/accumulation/accelerate/accelerator.h"
#include "ranks.h"

using namespace accrue;
using namespace accrue::accelerate;

namespace {

constexpr std::int64_t gradient_accumulation_steps = 2, samples = 20, batches = 5, ignored = -100;

struct Batch {
  at::Tensor inputs, labels;  // [samples, length, 1], [samples, length]
};

/// Sample i is 0.1, 0.2, ..., up to (i + 1) / 10; the label of a number is the parity of its index.
Batch collate(const std::vector<std::int64_t>& which) {
  std::vector<at::Tensor> inputs, labels;
  for (const std::int64_t i : which) {
    const at::Tensor places = at::arange(1, i + 2, at::kLong);
    inputs.push_back(places.to(at::kDouble) / 10.0);
    labels.push_back(at::remainder(places, 2));
  }
  return {at::pad_sequence(inputs, true).unsqueeze(2), at::pad_sequence(labels, true, ignored)};
}

void train(Communicator& axis) {
  torch::nn::Linear model(torch::nn::LinearOptions(1, 2).bias(false));
  model->to(at::kDouble);
  {
    const at::NoGradGuard no_grad;
    model->weight.copy_(at::tensor({0.25, -0.5}, at::kDouble).view({2, 1}));
  }
  torch::optim::SGD sgd(model->parameters(), 0.08);
  auto schedule = std::make_shared<LambdaLR>(sgd, [](std::int64_t n) { return std::pow(0.9, static_cast<double>(n)); });

  Accelerator accelerator({.gradient_accumulation_steps = gradient_accumulation_steps}, axis);
  auto [ddp, optimizer, loader, scheduler] = accelerator.prepare(
      model, sgd, map_loader(samples, collate, {.batch_size = samples / batches / axis.size()}), schedule);
  const double share = static_cast<double>(gradient_accumulation_steps * accelerator.num_processes());

  for (int epoch = 0; epoch < 2; ++epoch) {
    auto batch = loader.begin();
    while (batch != loader.end()) {
      std::vector<Batch> group;
      for (; batch != loader.end() && std::ssize(group) < gradient_accumulation_steps; ++batch) group.push_back(*batch);
      std::int64_t own = 0;
      for (const Batch& each : group) own += each.labels.ne(ignored).sum().item<std::int64_t>();
      const auto items = accelerator.gather(at::full({}, own, at::kLong)).sum().item<std::int64_t>();

      at::Tensor logged = at::zeros({}, at::kDouble);
      for (std::size_t i = 0; i < group.size(); ++i) {
        std::optional<NoSyncScope> quiet;
        if (i + 1 < group.size()) quiet.emplace(accelerator.no_sync(model));
        const at::Tensor sum = at::cross_entropy_loss(model(group[i].inputs).view({-1, 2}), group[i].labels.view({-1}),
                                                      {}, at::Reduction::Sum, ignored);
        accelerator.backward(sum * share / items);
        logged += sum.detach() / items;
      }
      optimizer.step();
      scheduler.step();
      optimizer.zero_grad();
      const double loss = accelerator.reduce(logged).item<double>();
      if (accelerator.is_main_process())
        std::printf("%zu batches, %ld tokens, loss %.8f, weight [%.8f, %.8f], rate %.8f\n", group.size(),
                    static_cast<long>(items), loss, model->weight[0].item<double>(), model->weight[1].item<double>(),
                    scheduler.get_last_lr().at(0));
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (const auto ranks = examples::option(argc, argv, "--ranks")) return examples::launch(std::stoi(*ranks), {});
  const examples::Ranks ranks = examples::join(argc, argv);
  train(*ranks.data);
  std::fflush(stdout);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "accelerate_token_loop: %s\n", error.what());
  return 1;
}
