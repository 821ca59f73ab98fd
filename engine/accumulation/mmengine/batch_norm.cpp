// SPDX-License-Identifier: Apache-2.0
// A file of its own: only this question needs LibTorch's modules.
#include "accumulation/mmengine/batch_norm.h"

#include <torch/nn/modules/batchnorm.h>

namespace accrue::mmengine {

bool has_batch_norm(const torch::nn::Module& model) {
  for (const auto& module : model.modules(/*include_self=*/false))
    if (module->as<torch::nn::BatchNorm1dImpl>() != nullptr || module->as<torch::nn::BatchNorm2dImpl>() != nullptr ||
        module->as<torch::nn::BatchNorm3dImpl>() != nullptr)
      return true;
  return dynamic_cast<const torch::nn::BatchNorm1dImpl*>(&model) != nullptr ||
         dynamic_cast<const torch::nn::BatchNorm2dImpl*>(&model) != nullptr ||
         dynamic_cast<const torch::nn::BatchNorm3dImpl*>(&model) != nullptr;
}

}  // namespace accrue::mmengine
