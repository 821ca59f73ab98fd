// SPDX-License-Identifier: Apache-2.0
// Whether a model normalises over the batch, of which accumulation shows it only pieces.
#pragma once

namespace torch::nn {
class Module;
}

namespace accrue::mmengine {

bool has_batch_norm(const torch::nn::Module& model);

}  // namespace accrue::mmengine
