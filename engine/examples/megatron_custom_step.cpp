// SPDX-License-Identifier: Apache-2.0
// A user's train step: samples with key tokens weigh more in the loss. The model is all zeros, so every token's loss is
// log 256, and the step's loss follows from the weights alone. With 0, 1, 2 and 3 key tokens (7 and 9) and alpha = 0.25
// they are 1, 1.25, 1.5 and 1.75, with the mean 1.375.
// Source: the custom step of Accelerate's guide to Megatron-LM.
#include <ATen/ops/isin.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/adamw.h>

#include <cmath>
#include <cstdio>
#include <sstream>

#include "accrue/comm/mesh.h"
#include "accrue/megatron/accelerator.h"
#include "accrue/megatron/data_parallel_groups.h"

using namespace accrue::megatron;
using accrue::Mesh;
using accrue::ModelKind;
using accrue::ModelSpec;

class GPTTrainStepWithCustomLoss final : public AbstractTrainStep {
 public:
  GPTTrainStepWithCustomLoss(const TrainStepArgs& args, const StepKeywords& keywords)
      : AbstractTrainStep("GPTTrainStepWithCustomLoss"),
        standard_(args),
        data_(args.data),
        alpha_(keywords.number("alpha")) {
    std::vector<std::int64_t> ids;
    std::istringstream words(keywords.at("keytoken_ids"));
    for (std::int64_t id = 0; words >> id;) ids.push_back(id);
    keytokens_ = at::tensor(ids, at::kLong);
  }

  Batch get_batch(DataIter& data) override { return standard_.get_batch(data); }

  LossOut loss_func(const Batch& batch, const Tensors& outputs) override {
    const at::Tensor& mask = batch.at("loss_mask");
    const at::Tensor of_samples = (outputs.at(0) * mask).sum(1) / mask.sum(1);
    const at::Tensor weights = 1.0 + alpha_ * at::isin(batch.at("tokens"), keytokens_).sum(1);
    const at::Tensor loss = (of_samples * weights).mean();
    return {loss, std::nullopt, {{"lm loss", avg_losses_across_data_parallel_group({loss}, *data_)[0]}}};
  }

 private:
  GPTTrainStep standard_;
  accrue::Communicator* data_;
  at::Tensor keytokens_;
  double alpha_;
};

int main() {
  MegatronLMPlugin plugin;
  plugin.num_micro_batches = 2;
  plugin.lr_decay_style = "constant";
  plugin.custom_train_step_class = [](const TrainStepArgs& args, const StepKeywords& keywords) {
    return std::make_shared<GPTTrainStepWithCustomLoss>(args, keywords);
  };
  plugin.custom_train_step_kwargs = {{"keytoken_ids", "7 9"}, {"alpha", "0.25"}};

  Mesh mesh;
  Accelerator accelerator({.megatron_lm_plugin = plugin}, mesh);
  const ModelSpec gpt{.kind = ModelKind::gpt,
                      .dtype = accrue::Dtype::float64,
                      .layers = 1,
                      .width = 8,
                      .heads = 1,
                      .context = 4,
                      .vocabulary = 256,
                      .init = accrue::WeightInit::zeros};
  const at::Tensor samples = at::tensor({1, 2, 3, 4, 7, 2, 3, 4, 7, 9, 3, 4, 9, 7, 9, 4}, at::kLong).view({4, 4});
  const auto rows = [&](const std::vector<std::int64_t>& which) {
    return Batch{{"input_ids", samples.index_select(0, at::tensor(which))}};
  };
  const torch::optim::AdamW adamw(std::vector<at::Tensor>{}, torch::optim::AdamWOptions(0.0));
  auto& prepared = accelerator.prepare(gpt, adamw, {.total_num_steps = 1},
                                       {accrue::accelerate::map_loader(samples.size(0), rows, {.batch_size = 2})});
  prepared.model.train();
  for (const Batch& batch : prepared.loaders[0])
    std::printf("loss %.6f, by hand %.6f\n", prepared.model(batch).loss.item<double>(), 1.375 * std::log(256.0));
  return 0;
}
