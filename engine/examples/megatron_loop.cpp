// SPDX-License-Identifier: Apache-2.0
// The training loop of Accelerate's guide to Megatron-LM with a user's data: a dummy scheduler, the samples of an
// update, losses that are already averaged, an evaluation and its perplexity, and a state that is saved and loaded. The
// model predicts a token from the one before it.
//   megatron_loop              one rank, an update is four micro-batches of two rows
//   megatron_loop --ranks 2    two replicas with two micro-batches each: the same numbers
// Source: Hugging Face Accelerate, the guide to Megatron-LM.
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <filesystem>

#include "bigrams.h"

using namespace accrue::megatron;
using accrue::Mesh;
using accrue::accelerate::map_loader;

namespace {

constexpr std::int64_t words = 6, length = 5, updates = 6, rows_of_an_update = 8;

/// Row r begins with the token r and counts on by one, or by two in every third row.
Batch rows(const std::vector<std::int64_t>& which) {
  std::vector<std::int64_t> tokens;
  for (const std::int64_t row : which)
    for (std::int64_t place = 0; place < length; ++place)
      tokens.push_back((row + place * (row % 3 == 2 ? 2 : 1)) % words);
  return {{"input_ids", at::tensor(tokens, at::kLong).view({-1, length})}};
}

/// exp of the mean loss of a pass over the loader.
double perplexity(PreparedModel& model, PreparedLoader& loader) {
  model.eval();
  double sum = 0.0;
  std::int64_t batches = 0;
  for (const Batch& batch : loader) {
    sum += model(batch).loss.item<double>();  // a mean over the replicas, so nothing needs gathering
    ++batches;
  }
  model.train();
  return std::exp(sum / static_cast<double>(batches));
}

void train(accrue::Rendezvous* ranks, const std::filesystem::path& folder) {
  MegatronLMPlugin plugin;
  Mesh mesh = examples::mesh_of(ranks, plugin);
  plugin.num_micro_batches = rows_of_an_update / 2 / mesh.grid().data;
  plugin.custom_model_provider_function = examples::bigrams(at::zeros({words, words}, at::kDouble));
  const auto accelerator_of = [&] {
    return std::make_unique<Accelerator>(AcceleratorOptions{.megatron_lm_plugin = plugin}, mesh);
  };
  const torch::optim::SGD sgd(std::vector<at::Tensor>{}, torch::optim::SGDOptions(8.0));
  const MegatronLMDummyScheduler schedule{.total_num_steps = updates, .warmup_num_steps = 2};
  const std::vector<LoaderSource> data{map_loader(16, rows, {.batch_size = 2}),
                                       map_loader(24, rows, {.batch_size = 2})};

  const auto accelerator = accelerator_of();
  auto& [model, optimizer, scheduler, loaders] = accelerator->prepare(ModelProvider{}, sgd, schedule, data);
  const bool prints = accelerator->is_main_process();  // the last rank
  if (prints) std::printf("an update has %ld samples\n", static_cast<long>(accelerator->global_batch_size()));
  while (accelerator->progress().iteration < updates) {
    for (const Batch& batch : loaders[0]) {
      const double rate = scheduler.get_last_lr();
      const auto out = model(batch);
      accelerator->backward(out.loss);
      optimizer.step();
      scheduler.step();
      optimizer.zero_grad();
      if (prints) std::printf("rate %.6f, loss %.10f\n", rate, out.loss.item<double>());
    }
    const double value = perplexity(model, loaders[1]);
    if (prints)
      std::printf("after %ld updates: perplexity %.10f\n", static_cast<long>(accelerator->progress().iteration), value);
  }
  accrue::must(accelerator->save_state(folder));

  const auto other = accelerator_of();
  auto& loaded = other->prepare(ModelProvider{}, sgd, schedule, data);
  accrue::must(other->load_state(folder));
  const double value = perplexity(loaded.model, loaded.loaders[1]);
  if (prints)
    std::printf("loaded, after %ld updates: perplexity %.10f\n", static_cast<long>(other->progress().iteration), value);
}

}  // namespace

int main(int argc, char** argv) try {
  const auto given = examples::option(argc, argv, "--folder");
  if (given) {
    const auto ranks = examples::meet(argc, argv);
    train(ranks.get(), *given);
    std::fflush(stdout);
    return 0;
  }
  auto folder = (std::filesystem::temp_directory_path() / "accrue-megatron-loop-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 5;
  const int ranks = std::stoi(examples::option(argc, argv, "--ranks").value_or("1"));
  const int status = examples::launch(ranks, {"--folder", folder + "/state"});
  std::filesystem::remove_all(folder);
  return status;
} catch (const std::exception& error) {
  std::fprintf(stderr, "megatron_loop: %s\n", error.what());
  return 1;
}
