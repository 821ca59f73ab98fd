// SPDX-License-Identifier: Apache-2.0
// A separate file, because only this function needs LibTorch's modules.
#include "accumulation/mmengine/batch_norm.h"

#include <torch/nn/modules/batchnorm.h>

namespace accrue::mmengine {

bool has_batch_norm(const torch::nn::Module& model) {
  bool found = false;
  model.apply([&found](const torch::nn::Module& each) {
    found = found || each.as<torch::nn::BatchNorm1dImpl>() != nullptr ||
            each.as<torch::nn::BatchNorm2dImpl>() != nullptr || each.as<torch::nn::BatchNorm3dImpl>() != nullptr;
  });
  return found;
}

}  // namespace accrue::mmengine
