// SPDX-License-Identifier: Apache-2.0
// Logits beside the loss, as in Accelerate's guide to Megatron-LM: they are on the last stage, and belong to one
// replica until they are gathered. The model has known probabilities: after a token the next one in the circle of four
// comes with 0.7, each of the others with 0.1.
//   megatron_logits [--ranks 2]
// Source: Hugging Face Accelerate, the guide to Megatron-LM, return_logits and gather_across_data_parallel_groups.
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <torch/optim/sgd.h>

#include <cmath>

#include "accrue/megatron/data_parallel_groups.h"
#include "bigrams.h"

using namespace accrue::megatron;
using accrue::Mesh;

namespace {

/// Eight rows of four steps; the last step of an odd row goes nowhere.
Batch rows(const std::vector<std::int64_t>& which) {
  std::vector<std::int64_t> tokens;
  for (const std::int64_t row : which)
    for (std::int64_t place = 0; place < 5; ++place) tokens.push_back((row + place - (row % 2) * (place / 4)) % 4);
  const at::Tensor all = at::tensor(tokens, at::kLong).view({-1, 5});
  return {{"input_ids", all}, {"labels", all}};
}

void evaluate(accrue::Rendezvous* ranks) {
  MegatronLMPlugin plugin;
  plugin.return_logits = true;
  Mesh mesh = examples::mesh_of(ranks, plugin);
  plugin.num_micro_batches = 2 / mesh.grid().data;
  const at::Tensor probabilities = 0.1 * at::full({4, 4}, 1.0, at::kDouble) + 0.6 * at::eye(4, at::kDouble).roll(1, 1);
  plugin.custom_model_provider_function = examples::bigrams(probabilities.log());

  Accelerator accelerator({.megatron_lm_plugin = plugin}, mesh);
  const torch::optim::SGD sgd(std::vector<at::Tensor>{}, torch::optim::SGDOptions(0.1));
  auto& [model, optimizer, scheduler, loaders] = accelerator.prepare(
      ModelProvider{}, sgd, {.total_num_steps = 1}, {accrue::accelerate::map_loader(8, rows, {.batch_size = 4})});
  model.eval();
  for (const Batch& batch : loaders[0]) {
    const auto out = model(batch);
    const TensorTree all = gather_across_data_parallel_groups(
        TensorTree::Table{{"logits", out.logits}, {"labels", batch.at("labels")}}, mesh.data());
    const at::Tensor& logits = all.at("logits").tensor();
    // The logits of a position predict the next token.
    const at::Tensor guesses = logits.narrow(1, 0, 4).argmax(-1), next = all.at("labels").tensor().narrow(1, 1, 4);
    if (accelerator.is_main_process())
      std::printf("own logits %ld x %ld x %ld, gathered %ld rows, accuracy %.6f, perplexity %.10f\n",
                  static_cast<long>(out.logits.size(0)), static_cast<long>(out.logits.size(1)),
                  static_cast<long>(out.logits.size(2)), static_cast<long>(logits.size(0)),
                  (guesses == next).to(at::kDouble).mean().item<double>(), std::exp(out.loss.item<double>()));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (const auto ranks = examples::option(argc, argv, "--ranks")) return examples::launch(std::stoi(*ranks), {});
  const auto ranks = examples::meet(argc, argv);
  evaluate(ranks.get());
  std::fflush(stdout);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "megatron_logits: %s\n", error.what());
  return 1;
}
