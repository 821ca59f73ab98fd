// SPDX-License-Identifier: Apache-2.0
// From a text to a model that continues it, with the Megatron-LM plug-in: builds an indexed dataset, trains a small GPT
// on it, and continues the text.
// Source: the order of Accelerate's guide to Megatron-LM.
#include <torch/optim/adamw.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "accrue/comm/mesh.h"
#include "accrue/megatron/accelerator.h"
#include "accrue/megatron/text_generation.h"
#include "accrue/run/base/program.h"
#include "accrue/run/data/text_dataset.h"

using namespace accrue::megatron;
using accrue::Mesh;
using accrue::ModelKind;
using accrue::ModelSpec;

namespace {

constexpr const char* rhyme =
    "One, two, three, four, five, once I caught a fish alive. Six, seven, eight, nine, ten, then I let it go again. ";

/// Makes rhyme.bin and rhyme.idx with one token per byte; one rank builds them.
std::filesystem::path build_data(const std::filesystem::path& folder) {
  const auto text = folder / "rhyme.txt", prefix = folder / "rhyme";
  std::filesystem::create_directories(folder);
  std::ofstream file(text);
  for (int i = 0; i < 20; ++i) file << rhyme << '\n';
  file.close();
  accrue::TextDatasetRequest request;
  request.texts = {text};
  request.prefix = prefix;
  request.documents = accrue::DocumentKind::line;
  accrue::must(accrue::build_text_dataset(request, {}));
  return prefix;
}

}  // namespace

int main() {
  auto folder = (std::filesystem::temp_directory_path() / "accrue-megatron-gpt-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 5;
  const auto prefix = build_data(folder);

  MegatronLMPlugin plugin;
  plugin.num_micro_batches = 2;
  plugin.seq_length = 32;
  plugin.train_iters = 400;
  plugin.eval_interval = 200;
  plugin.eval_iters = 2;
  plugin.gradient_clipping = 1.0;
  plugin.lr_decay_style = "cosine";
  plugin.lr_warmup_iters = 10;

  Mesh mesh;
  Accelerator accelerator({.megatron_lm_plugin = plugin}, mesh);
  const ModelSpec gpt{.kind = ModelKind::gpt, .layers = 2, .width = 64, .heads = 4, .context = 32, .vocabulary = 256};
  const torch::optim::AdamW adamw(std::vector<at::Tensor>{}, torch::optim::AdamWOptions(3e-3).weight_decay(0.01));
  const MegatronLMDummyDataLoader data{.data_path = {prefix.string()}, .split = "80,10,10", .micro_batch_size = 4};
  auto& [model, optimizer, scheduler, loaders] = accelerator.prepare(gpt, adamw, {}, {data, data, data});

  model.train();
  double loss = 0.0;
  for (const Batch& batch : loaders[0]) {
    const auto out = model(batch);
    accelerator.backward(out.loss);
    optimizer.step();
    scheduler.step();
    optimizer.zero_grad();
    if (accelerator.progress().iteration == 1) std::printf("first loss %.2f\n", out.loss.item<double>());
    loss = out.loss.item<double>();
    if (accelerator.progress().iteration == *plugin.train_iters) break;
  }
  std::printf("loss after %lld updates is below 0.5: %s\n", static_cast<long long>(accelerator.progress().iteration),
              loss < 0.5 ? "yes" : "no");
  for (const Evaluation& each : accelerator.evaluations())
    std::printf("evaluation after %lld updates: %s %.2f\n", static_cast<long long>(each.iteration),
                each.losses.at(0).first.c_str(), each.losses.at(0).second);
  const double test = accelerator.evaluate(loaders[2]).losses.at(0).second;
  std::printf("perplexity of the test part is below 2: %s\n", std::exp(test) < 2.0 ? "yes" : "no");

  model.eval();
  const auto logits = [&](const at::Tensor& tokens) { return model.logits({{"tokens", tokens}}); };
  const std::string prompt = "Six, seven, ";
  const auto rows = generate(logits, {TokenList(prompt.begin(), prompt.end())},
                             {.tokens_to_generate = 20, .top_k = 1, .longest = gpt.context});
  std::printf("%s\n", std::string(rows[0].tokens.begin(), rows[0].tokens.end()).c_str());
  std::filesystem::remove_all(folder);
  return 0;
}
