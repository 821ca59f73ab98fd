// SPDX-License-Identifier: Apache-2.0
// A slope that a provider makes, and a small GPT with its tokens, for tests of the Megatron-LM plug-in, and the options
// that they give an Accelerator.
#pragma once

#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <torch/optim/adamw.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "accrue/data/data_source.h"
#include "accrue/megatron/accelerator.h"

namespace accrue::test {

/// y = w x.
struct Slope final : megatron::ModelChunk {
  Slope() : weight(register_parameter("weight", at::full({1}, 0.5, at::kDouble))) {}
  megatron::Tensors forward(const megatron::Batch& batch) override { return {batch.at("x") * weight}; }
  at::Tensor weight;
};

/// Half the mean square of what the slope misses.
inline megatron::LossOut slope_loss(const megatron::Batch& batch, const megatron::Tensors& outputs) {
  const at::Tensor loss = (outputs.at(0) - batch.at("y")).square().mean() * 0.5;
  return {loss, std::nullopt, {{"slope loss", loss.detach()}}};
}

inline megatron::MegatronLMPlugin slope_plugin(std::int64_t micro_batches) {
  megatron::MegatronLMPlugin plugin;
  plugin.num_micro_batches = micro_batches;
  plugin.custom_model_provider_function = [](const megatron::ChunkPlace&) { return std::make_shared<Slope>(); };
  plugin.custom_get_batch_function = [](megatron::DataIter& data) { return data.next(); };
  plugin.custom_loss_function = slope_loss;
  return plugin;
}

/// The weight that it has come to.
inline double slope_of(const megatron::Prepared& prepared) {
  return prepared.model.chunks().at(0)->named_parameters()["weight"].item<double>();
}

/// Options that ignore the environment.
inline megatron::AcceleratorOptions with(megatron::MegatronLMPlugin plugin) {
  megatron::AcceleratorOptions options;
  options.megatron_lm_plugin = std::move(plugin);
  options.environment = empty_environment();
  return options;
}

/// x = 1, ..., samples, and y = 2 x.
inline accelerate::MapLoader<megatron::Batch> slope_loader(std::int64_t samples, std::int64_t batch_size) {
  return accelerate::map_loader(samples,
                                [](const std::vector<std::int64_t>& rows) {
                                  const at::Tensor x = at::tensor(rows, at::kDouble) + 1.0;
                                  return megatron::Batch{{"x", x}, {"y", 2.0 * x}};
                                },
                                {.batch_size = batch_size});
}

inline ModelSpec tiny_gpt() {
  return {.kind = ModelKind::gpt,
          .dtype = Dtype::float64,
          .layers = 4,
          .width = 16,
          .heads = 4,
          .context = 8,
          .vocabulary = 20};
}

/// Row r, place p: a token that follows from both.
inline accelerate::MapLoader<megatron::Batch> token_loader(std::int64_t samples, std::int64_t batch_size) {
  return accelerate::map_loader(samples,
                                [](const std::vector<std::int64_t>& rows) {
                                  std::vector<std::int64_t> tokens;
                                  for (const std::int64_t row : rows)
                                    for (std::int64_t place = 0; place < 8; ++place)
                                      tokens.push_back((row * 7 + place * (row % 3 + 1)) % 19);
                                  return megatron::Batch{{"input_ids", at::tensor(tokens, at::kLong).view({-1, 8})}};
                                },
                                {.batch_size = batch_size});
}

inline ModelSpec tiny_bert() {
  return {.kind = ModelKind::bert,
          .dtype = Dtype::float64,
          .layers = 2,
          .width = 16,
          .heads = 4,
          .context = 16,
          .vocabulary = 40};
}

inline ModelSpec tiny_t5() {
  ModelSpec model = tiny_bert();
  model.kind = ModelKind::t5;
  return model;
}

/// The made samples of a run.
inline std::shared_ptr<DataSource> made_sentences(const ModelSpec& model) {
  RunSpec spec;
  spec.model = model;
  spec.data.samples = 24;
  return open_data(spec, scan_data(spec, ".").value(), ".").value();
}

/// The same as an indexed data set, or as a loader has them.
inline accelerate::MapLoader<megatron::Batch> sentence_loader(const ModelSpec& model, bool indexed,
                                                              std::int64_t batch_size) {
  return accelerate::map_loader(
      24,
      [source = made_sentences(model), kind = model.kind,
       indexed](const std::vector<std::int64_t>& rows) -> megatron::Batch {
        const Batch batch = source->batch(Split::train, rows);
        if (indexed) return megatron::named_batch(batch, kind);
        const at::Tensor real = batch.padding.defined() ? batch.padding : at::ones_like(batch.inputs);
        megatron::Batch loaded{{"input_ids", batch.inputs}, {"attention_mask", real}, {"labels", batch.targets}};
        if (kind == ModelKind::t5) {
          loaded["decoder_input_ids"] = batch.decoder_inputs;
        } else {
          loaded["token_type_ids"] = batch.types;
          loaded["next_sentence_label"] = batch.order;
        }
        return loaded;
      },
      {.batch_size = batch_size});
}

/// A carrier, which holds no parameters.
inline torch::optim::AdamW adamw(double lr, double weight_decay = 0.01) {
  return torch::optim::AdamW(std::vector<at::Tensor>{}, torch::optim::AdamWOptions(lr).weight_decay(weight_decay));
}

}  // namespace accrue::test
