// SPDX-License-Identifier: Apache-2.0
// A plug-in library of parts that are not as they should be: a loss that throws, batches that are other ones on every
// rank, and a model with heads that are seldom used, or never.
#include <unistd.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>

#include "accrue/megatron/plugin_library.h"

using namespace accrue::megatron;

namespace {

LossOut undefined_loss(const Batch& /*batch*/, const Tensors& /*outputs*/) {
  throw std::runtime_error("the logarithm of nothing is not defined");
}

LossOut without_memory(const Batch& /*batch*/, const Tensors& /*outputs*/) {
  throw std::bad_alloc();
}

/// Needs more memory than any machine has.
at::Tensor too_large() {
  return at::ones({std::int64_t{1} << 50});
}
LossOut large_loss(const Batch& /*batch*/, const Tensors& /*outputs*/) {
  return {too_large().sum(), std::nullopt, {}};
}

/// As a device's allocator tells it.
Batch without_device_memory(DataIter& /*data*/) {
  TORCH_CHECK_WITH(OutOfMemoryError, false, "the device has no memory left");
}

/// The mask of a GPT, times a number that no other process has.
Batch of_this_process(DataIter& data) {
  Batch batch = GPTTrainStep({.megatron_dataset_flag = true}).get_batch(data);
  batch["loss_mask"] = batch.at("loss_mask") * static_cast<double>(::getpid());
  return batch;
}

struct Large final : ModelChunk {
  Large() { register_parameter("one", at::ones({1})); }
  Tensors forward(const Batch& /*batch*/) override { return {too_large()}; }
};
/// Shapes that do not fit.
struct Unfit final : ModelChunk {
  Unfit() { register_parameter("one", at::ones({1})); }
  Tensors forward(const Batch& /*batch*/) override { return {at::ones({2, 3}).matmul(at::ones({2, 3}))}; }
};

/// Weights of 1, whose gradients are those of the mean output: `once` is used where x is 1, `never` nowhere.
struct Heads final : ModelChunk {
  Heads() {
    always = register_parameter("always", at::ones({1, 1}, at::kDouble));
    once = register_parameter("once", at::ones({1, 1}, at::kDouble));
    never = register_parameter("never", at::ones({1, 1}, at::kDouble));
  }
  Tensors forward(const Batch& batch) override {
    const at::Tensor& x = batch.at("inputs");
    return {(x == 1.0).any().item<bool>() ? x * always + once : x * always};
  }
  at::Tensor always, once, never;
};

LossOut mean_output(const Batch& /*batch*/, const Tensors& outputs) {
  const at::Tensor loss = outputs.at(0).mean();
  return {loss, std::nullopt, {{"mean output", loss.detach()}}};
}

/// The same by a train step of one's own.
struct StepOfThisProcess final : AbstractTrainStep {
  explicit StepOfThisProcess(const TrainStepArgs& args) : AbstractTrainStep("StepOfThisProcess"), own(args) {}
  Batch get_batch(DataIter& data) override { return of_this_process(data); }
  LossOut loss_func(const Batch& batch, const Tensors& outputs) override { return own.loss_func(batch, outputs); }
  GPTTrainStep own;
};

}  // namespace

ACCRUE_PLUGIN("Faults", registry) {
  registry.custom_model_provider_function.add("heads", [](const ChunkPlace&) { return std::make_shared<Heads>(); });
  registry.custom_model_provider_function.add("large", [](const ChunkPlace&) { return std::make_shared<Large>(); });
  registry.custom_model_provider_function.add("unfit", [](const ChunkPlace&) { return std::make_shared<Unfit>(); });
  registry.custom_loss_function.add("without_memory", without_memory);
  registry.custom_loss_function.add("large", large_loss);
  registry.custom_get_batch_function.add("without_device_memory", without_device_memory);
  registry.custom_loss_function.add("mean_output", mean_output);
  registry.custom_loss_function.add("undefined", undefined_loss);
  registry.custom_get_batch_function.add("of_this_process", of_this_process);
  registry.custom_train_step_class.add("of_this_process", [](const TrainStepArgs& args, const StepKeywords&) {
    return std::make_shared<StepOfThisProcess>(args);
  });
}
