// SPDX-License-Identifier: Apache-2.0
// A plug-in library with parts that a spec can name:
//
//   accrue-run run SPEC.accrue --plugin libplugin_library.so --set megatron.custom_loss_function=half_square
//
// Each part is small enough to be checked by hand.
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include "accrue/megatron/data_parallel_groups.h"
#include "accrue/megatron/plugin_library.h"

using namespace accrue::megatron;

namespace {

/// Half the mean square: its gradient is half of the mean square's.
LossOut half_square(const Batch& batch, const Tensors& outputs) {
  const at::Tensor& y = outputs.at(0);
  const at::Tensor loss = 0.5 * (y - batch.at("targets").view_as(y)).square().mean();
  return {loss, std::nullopt, {{"half square", loss.detach()}}};
}

/// The train step of Accelerate's guide with one key token: samples that contain it weigh more.
class KeyTokenStep final : public AbstractTrainStep {
 public:
  KeyTokenStep(const TrainStepArgs& args, const StepKeywords& keywords)
      : AbstractTrainStep("KeyTokenStep"),
        standard_(args),
        data_(args.data),
        key_token_(keywords.integer("keytoken_id")),
        alpha_(keywords.number("alpha")) {}

  Batch get_batch(DataIter& data) override { return standard_.get_batch(data); }

  LossOut loss_func(const Batch& batch, const Tensors& outputs) override {
    const at::Tensor& mask = batch.at("loss_mask");
    const at::Tensor of_samples = (outputs.at(0) * mask).sum(1) / mask.sum(1);
    const at::Tensor weights = 1.0 + alpha_ * (batch.at("tokens") == key_token_).sum(1);
    const at::Tensor loss = (of_samples * weights).mean();
    return {loss, std::nullopt, {{"lm loss", avg_losses_across_data_parallel_group({loss}, *data_)[0]}}};
  }

 private:
  GPTTrainStep standard_;
  accrue::Communicator* data_;
  std::int64_t key_token_;
  double alpha_;
};

/// y = w x, with w = 0.5 at the start.
struct Slope final : ModelChunk {
  Slope() : weight(register_parameter("weight", at::full({1}, 0.5, at::kDouble))) {}
  Tensors forward(const Batch& batch) override { return {batch.at("inputs") * weight}; }
  at::Tensor weight;
};

/// x = 1, 2, ..., and y = 2 x, as many as requested.
std::vector<MegatronDataset> doubles(const std::vector<std::int64_t>& needed) {
  std::vector<MegatronDataset> sets;
  for (const std::int64_t samples : needed)
    sets.push_back({samples, [](const std::vector<std::int64_t>& rows) {
                      const at::Tensor x = at::tensor(rows, at::kDouble).view({-1, 1}) + 1.0;
                      return Batch{{"inputs", x}, {"targets", 2.0 * x}};
                    }});
  return sets;
}

/// The batch with other targets: y = 3 x.
Batch thirds(DataIter& data) {
  Batch batch = data.next();
  batch["targets"] = batch.at("inputs") * 3.0;
  return batch;
}

/// The slope, started at 3.
std::vector<std::shared_ptr<ModelChunk>> from_three(const ModelProvider& provider,
                                                    const std::vector<ChunkPlace>& places) {
  std::vector<std::shared_ptr<ModelChunk>> chunks;
  for (const ChunkPlace& place : places) {
    chunks.push_back(provider(place));
    for (at::Tensor& parameter : chunks.back()->parameters()) parameter.data().fill_(3.0);
  }
  return chunks;
}

}  // namespace

ACCRUE_PLUGIN("Accrue's sample", registry) {
  registry.custom_loss_function.add("half_square", half_square);
  registry.custom_train_step_class.add("key_tokens", [](const TrainStepArgs& args, const StepKeywords& keywords) {
    return std::make_shared<KeyTokenStep>(args, keywords);
  });
  registry.custom_model_provider_function.add("slope", [](const ChunkPlace&) { return std::make_shared<Slope>(); });
  registry.custom_prepare_model_function.add("from_three", from_three);
  registry.custom_megatron_datasets_provider_function.add("doubles", doubles);
  registry.add_datasets("four_doubles", {.training = 4}, doubles);
  registry.custom_get_batch_function.add("thirds", thirds);
}
