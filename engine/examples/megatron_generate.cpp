// SPDX-License-Identifier: Apache-2.0
// Text in the four ways of megatron_generate(): top-p, top-k, with a token before the prompt, and a beam. The model has
// five words with known probabilities, so each distribution and score can be checked by hand. Source: Hugging Face
// Accelerate, the guide to Megatron-LM, megatron_generate.
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <map>

#include "accrue/megatron/text_generation.h"
#include "bigrams.h"

using namespace accrue::megatron;

namespace {

constexpr const char* words[] = {"<end>", "the", "old", "cat", "sleeps"};
constexpr std::int64_t end = 0, the = 1, old = 2;

/// Row: the last word. Column: the next one.
at::Tensor probabilities() {
  return at::tensor({0.04, 0.80, 0.08, 0.04, 0.04,   //
                     0.05, 0.05, 0.30, 0.50, 0.10,   //
                     0.05, 0.05, 0.10, 0.75, 0.05,   //
                     0.30, 0.05, 0.05, 0.10, 0.50,   //
                     0.80, 0.05, 0.05, 0.05, 0.05},  //
                    at::kDouble)
      .view({5, 5});
}

std::string text_of(const TokenList& tokens) {
  std::string text;
  for (const std::int64_t token : tokens) text += (text.empty() ? "" : " ") + std::string(words[token]);
  return text;
}

/// Prints the possible successors of "the", and their frequencies in a batch of 400 rows.
void show_sampling(const char* how, const LogitsFunction& logits, const GenerationOptions& options) {
  const at::Tensor after_the = logits(at::tensor({the}).view({1, 1})).select(1, 0);
  const at::Tensor chances = sampling_probabilities(after_the, options.temperature, options.top_k, options.top_p)[0];
  std::printf("%s:", how);
  for (std::int64_t word = 0; word < 5; ++word)
    if (const double p = chances[word].item<double>(); p > 0.0) std::printf(" %s %.8f", words[word], p);
  std::map<std::int64_t, int> second;
  std::map<std::string, int> texts;
  const std::vector<TokenList> prompts(400, {the});
  for (const GeneratedRow& row : generate(logits, prompts, options)) {
    ++second[row.tokens.size() > 1 ? row.tokens[1] : end];
    ++texts[text_of(row.tokens)];
  }
  bool as_likely = true;
  for (std::int64_t word = 0; word < 5; ++word)
    as_likely = as_likely && std::abs(second[word] / 400.0 - chances[word].item<double>()) < 0.1;
  std::printf("; drawn as often: %s\n", as_likely ? "yes" : "no");
  if (options.top_p > 0.0)  // only the likeliest words follow the first drawn one
    for (const auto& [text, times] : texts) std::printf("  %s\n", text.c_str());
}

void show(const char* how, const GeneratedRow& row) {
  std::printf("%s: \"%s\", prompt %ld, %.8f\n", how, text_of(row.tokens).c_str(), static_cast<long>(row.prompt),
              row.log_probability);
}

}  // namespace

int main() {
  MegatronLMPlugin plugin;
  plugin.custom_model_provider_function = examples::bigrams(probabilities().log());
  accrue::Mesh mesh;
  Accelerator accelerator({.megatron_lm_plugin = plugin}, mesh);
  const torch::optim::SGD sgd(std::vector<at::Tensor>{}, torch::optim::SGDOptions(0.1));
  const auto no_rows = [](const std::vector<std::int64_t>&) {
    return Batch{{"input_ids", at::ones({1, 2}, at::kLong)}};
  };
  auto& prepared = accelerator.prepare(ModelProvider{}, sgd, {.total_num_steps = 1},
                                       {accrue::accelerate::map_loader(1, no_rows, {.batch_size = 1})});
  prepared.model.eval();
  const auto logits = [&](const at::Tensor& tokens) { return prepared.model.logits({{"tokens", tokens}}); };

  show_sampling("top-p", logits,
                {.tokens_to_generate = 7, .temperature = 0.9, .top_p = 0.8, .top_p_decay = 0.5, .eod = end});
  show_sampling("top-k", logits, {.tokens_to_generate = 7, .temperature = 0.9, .top_k = 3, .eod = end});
  const auto rows =
      generate(logits, {{the}, {the, old}}, {.tokens_to_generate = 5, .top_k = 1, .add_bos = true, .eod = end});
  for (const GeneratedRow& row : rows) show("with the end before it", row);
  const auto beam =
      beam_search(logits, {the}, {.tokens_to_generate = 3, .beam_width = 20, .length_penalty = 1.5, .eod = end});
  for (std::size_t i = 0; i < 3; ++i) show("beam", beam.at(i));
  return 0;
}
