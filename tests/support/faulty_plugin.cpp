// SPDX-License-Identifier: Apache-2.0
// A plug-in library whose parts fail: a loss that throws, and batches that are other ones on every rank.
#include <unistd.h>

#include <ATen/TensorOperators.h>

#include <stdexcept>

#include "accrue/megatron/plugin_library.h"

using namespace accrue::megatron;

namespace {

LossOut undefined_loss(const Batch& /*batch*/, const Tensors& /*outputs*/) {
  throw std::runtime_error("the logarithm of nothing is not defined");
}

/// The mask of a GPT, times a number that no other process has.
Batch of_this_process(DataIter& data) {
  Batch batch = GPTTrainStep({.megatron_dataset_flag = true}).get_batch(data);
  batch["loss_mask"] = batch.at("loss_mask") * static_cast<double>(::getpid());
  return batch;
}

}  // namespace

ACCRUE_PLUGIN("Faults", registry) {
  registry.custom_loss_function.add("undefined", undefined_loss);
  registry.custom_get_batch_function.add("of_this_process", of_this_process);
}
