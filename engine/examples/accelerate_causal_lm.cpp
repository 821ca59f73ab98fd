// SPDX-License-Identifier: Apache-2.0
// Accelerate's documented sample for samples of variable size: the loss of a group is summed over its tokens and
// divided by the tokens of all of its batches on all ranks. One rank ends at (0.0953, 0.4337), two at (0.2117, 0.3172),
// and so does a single step over the whole batch.
//   accelerate_causal_lm                                                    one rank
//   torchrun --no-python --nproc-per-node 2 accelerate_causal_lm            two ranks
//   accrue-run launch -n 2 -- accelerate_causal_lm                          two ranks
//   accelerate_causal_lm --ranks 2                                          two ranks, without a launcher
//   ... --digits 10                                                         print weights with 10 digits
// Source: Hugging Face Accelerate, "Gradient accumulation on training samples of variable size".
#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/pad_sequence.h>
#include <ATen/ops/remainder.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <numeric>

#include "accrue/accumulation/accelerate/accelerator.h"
#include "ranks.h"

using namespace accrue;
using namespace accrue::accelerate;

constexpr std::int64_t gradient_accumulation_steps = 2;
constexpr std::int64_t per_device_batch_size = 4;
constexpr double padding = -100;

struct Batch {
  at::Tensor inputs, labels;  // [samples, length, 1], [samples, length]
};

/// Sample i is the sequence 1, 2, ..., i + 1; the label of a number is its parity.
Batch collate(const std::vector<std::int64_t>& samples) {
  std::vector<at::Tensor> inputs, labels;
  for (const std::int64_t i : samples) {
    inputs.push_back(at::arange(1, i + 2, at::kFloat));
    labels.push_back(at::remainder(inputs.back(), 2));
  }
  return {at::pad_sequence(inputs, true, padding).unsqueeze(2), at::pad_sequence(labels, true, padding)};
}

at::Tensor cross_entropy(torch::nn::Linear& model, const Batch& batch, at::Reduction::Reduction reduction) {
  return at::cross_entropy_loss(model(batch.inputs).view({-1, 2}), batch.labels.view({-1}).to(at::kLong), {},
                                reduction);
}

void print_weight(std::int64_t rank, const char* how, const torch::nn::Linear& model, int digits) {
  std::printf("Device %ld - %s accumulation, the final model weight is [%.*f, %.*f]\n", static_cast<long>(rank), how,
              digits, model->weight[0].item<double>(), digits, model->weight[1].item<double>());
}

int train(Communicator& axis, int digits) {
  at::manual_seed(0);
  torch::nn::Linear model(torch::nn::LinearOptions(1, 2).bias(false));
  torch::nn::Linear clone(torch::nn::LinearOptions(1, 2).bias(false));
  {
    const at::NoGradGuard no_grad;
    clone->weight.copy_(model->weight);
  }
  torch::optim::SGD sgd(model->parameters(), 0.08), clone_sgd(clone->parameters(), 0.08);

  Accelerator accelerator({.gradient_accumulation_steps = gradient_accumulation_steps}, axis);
  const long rank = static_cast<long>(accelerator.process_index());
  const std::int64_t samples = per_device_batch_size * gradient_accumulation_steps * accelerator.num_processes();
  if (accelerator.is_main_process())
    std::printf("initial model weight is [%.4f, %.4f]\n", model->weight[0].item<double>(),
                model->weight[1].item<double>());
  accelerator.prepare(*model);
  auto& optimizer = accelerator.prepare(sgd);
  auto loader = accelerator.prepare(map_loader(samples, collate, {.batch_size = per_device_batch_size}));

  auto batch = loader.begin();
  for (int update = 0; batch != loader.end(); ++update) {
    // The whole group is fetched first, because its number of tokens divides every loss in it.
    std::vector<Batch> group;
    for (; batch != loader.end() && std::ssize(group) < gradient_accumulation_steps; ++batch) group.push_back(*batch);
    std::int64_t tokens = 0;
    for (const Batch& each : group) tokens += each.labels.ne(padding).sum().item<std::int64_t>();
    std::printf("Step %d - Device %ld - num items in the local batch %ld\n", update, rank, static_cast<long>(tokens));
    const at::Tensor items = accelerator.gather(at::full({}, tokens, at::kLong)).sum();
    if (accelerator.is_main_process())
      std::printf("Total num items %ld\n", static_cast<long>(items.item<std::int64_t>()));

    for (std::size_t i = 0; i < group.size(); ++i) {
      std::optional<accelerate::NoSyncScope> quiet;
      if (i + 1 < group.size()) quiet.emplace(accelerator.no_sync(model));
      // backward() divides by the steps and the ranks' mean by the ranks; the tokens divide already.
      const at::Tensor loss = cross_entropy(model, group[i], at::Reduction::Sum);
      accelerator.backward(loss * gradient_accumulation_steps * accelerator.num_processes() / items);
    }
    optimizer.step();
    optimizer.zero_grad();
  }
  print_weight(rank, "w/", model, digits);

  if (accelerator.is_main_process()) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(samples));
    std::iota(all.begin(), all.end(), 0);
    cross_entropy(clone, collate(all), at::Reduction::Mean).backward();
    clone_sgd.step();
    print_weight(rank, "w/o", clone, digits);
  }
  std::fflush(stdout);
  accelerator.wait_for_everyone();
  return 0;
}

int main(int argc, char** argv) try {
  if (const auto ranks = examples::option(argc, argv, "--ranks")) return examples::launch(std::stoi(*ranks), {});
  const examples::Ranks ranks = examples::join(argc, argv);
  return train(*ranks.data, std::stoi(examples::option(argc, argv, "--digits").value_or("4")));
} catch (const std::exception& error) {
  std::fprintf(stderr, "accelerate_causal_lm: %s\n", error.what());
  return 1;
}
