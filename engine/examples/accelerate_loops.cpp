// SPDX-License-Identifier: Apache-2.0
// The steps by which Accelerate's guide turns a plain loop into accumulate(), each as a function on the same data: a
// line of twenty points in five batches, two epochs, two batches per update, and a rate that falls by a tenth with
// each. Five batches leave one over, which the loops handle differently.
//   accelerate_loops              one rank, batches of four
//   accelerate_loops --ranks 2 two ranks, batches of two: the same samples, but the rate falls twice per update
// Source: Hugging Face Accelerate, "Performing gradient accumulation".
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <numeric>

#include "accrue/accumulation/accelerate/accelerator.h"
#include "ranks.h"

using namespace accrue;
using namespace accrue::accelerate;

namespace {

constexpr std::int64_t gradient_accumulation_steps = 2, epochs = 2, points = 20, batches = 5;

struct Line : torch::nn::Module {
  Line() { weight = register_parameter("weight", at::zeros({1}, at::kDouble)); }
  at::Tensor forward(const at::Tensor& inputs) { return inputs * weight; }
  at::Tensor weight;
};

struct Batch {
  at::Tensor inputs, targets;
};

Batch fetch(const std::vector<std::int64_t>& samples) {
  const at::Tensor x = (at::tensor(samples, at::kDouble) + 1.0) / 10.0;
  return {x, 2.0 * x};
}

/// Common initial state of the loops.
struct Parts {
  Line model;
  torch::optim::SGD sgd{model.parameters(), 0.1};
  std::shared_ptr<LambdaLR> schedule =
      std::make_shared<LambdaLR>(sgd, [](std::int64_t n) { return std::pow(0.9, static_cast<double>(n)); });
};

void report(const char* loop, const Parts& parts, std::int64_t updates, std::int64_t reductions) {
  std::printf("%s: %ld updates, %ld reductions, weight %.10f, rate %.8f\n", loop, static_cast<long>(updates),
              static_cast<long>(reductions), parts.model.weight.item<double>(), parts.schedule->get_last_lr().at(0));
}

/// Without Accelerate. The remaining batch stays in the gradient and belongs to the next epoch's first update.
void plain() {
  Parts parts;
  std::int64_t updates = 0;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch)
    for (std::int64_t index = 0; index < batches; ++index) {
      std::vector<std::int64_t> samples(points / batches);
      std::iota(samples.begin(), samples.end(), index * points / batches);
      const auto [inputs, targets] = fetch(samples);
      const at::Tensor loss = at::mse_loss(parts.model.forward(inputs), targets) / gradient_accumulation_steps;
      loss.backward();
      if ((index + 1) % gradient_accumulation_steps == 0) {
        parts.sgd.step();
        parts.schedule->step();
        parts.sgd.zero_grad();
        ++updates;
      }
    }
  report("plain loop", parts, updates, 0);
}

/// With prepare() and backward(), but its own counting: the ranks reduce in every micro-step.
void converted(Communicator& axis) {
  Parts parts;
  Accelerator accelerator({}, axis);
  auto [ddp, optimizer, loader, scheduler] =
      accelerator.prepare(parts.model, parts.sgd,
                          map_loader(points, fetch, {.batch_size = points / batches / axis.size()}), parts.schedule);
  std::int64_t updates = 0;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    std::int64_t index = 0;
    for (auto& [inputs, targets] : loader) {
      accelerator.backward(at::mse_loss(parts.model.forward(inputs), targets) / gradient_accumulation_steps);
      if (++index % gradient_accumulation_steps == 0) {
        updates += optimizer.step() == StepOutcome::updated ? 1 : 0;
        scheduler.step();
        optimizer.zero_grad();
      }
    }
  }
  if (accelerator.is_main_process()) report("converted loop", parts, updates, ddp.reductions());
}

/// The finished loop: no count, no division and no condition.
void accumulated(const char* name, AcceleratorOptions options, Communicator& axis) {
  Parts parts;
  Accelerator accelerator(std::move(options), axis);
  auto [ddp, optimizer, loader, scheduler] =
      accelerator.prepare(parts.model, parts.sgd,
                          map_loader(points, fetch, {.batch_size = points / batches / axis.size()}), parts.schedule);
  std::int64_t updates = 0;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch)
    for (auto& [inputs, targets] : loader) {
      auto scope = accelerator.accumulate(parts.model);
      accelerator.backward(at::mse_loss(parts.model.forward(inputs), targets));
      updates += optimizer.step() == StepOutcome::updated ? 1 : 0;
      scheduler.step();
      optimizer.zero_grad();
    }
  if (accelerator.is_main_process()) report(name, parts, updates, ddp.reductions());
}

}  // namespace

int main(int argc, char** argv) try {
  if (const auto ranks = examples::option(argc, argv, "--ranks")) return examples::launch(std::stoi(*ranks), {});
  const examples::Ranks ranks = examples::join(argc, argv);
  if (ranks.data->size() == 1) plain();
  converted(*ranks.data);
  accumulated("accumulate()", {.gradient_accumulation_steps = gradient_accumulation_steps}, *ranks.data);
  // A window continues into the next epoch. A plug-in without num_steps does not accumulate at all.
  GradientAccumulationPlugin plugin{.sync_with_dataloader = false};
  accumulated("no sync_with_dataloader", {.gradient_accumulation_plugin = plugin}, *ranks.data);
  plugin.num_steps = gradient_accumulation_steps;
  accumulated("the same with num_steps", {.gradient_accumulation_plugin = plugin}, *ranks.data);
  std::fflush(stdout);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "accelerate_loops: %s\n", error.what());
  return 1;
}
