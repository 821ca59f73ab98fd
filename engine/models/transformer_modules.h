// SPDX-License-Identifier: Apache-2.0
// What the transformers share: the modules of a block under PyTorch's names, and initial weights that do not depend on
// how a model is divided.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "accrue/parallel/recompute.h"
#include "accrue/run/model_share.h"
#include "models/affine.h"
#include "models/gpt_operators.h"
#include "models/weight_init.h"

namespace accrue {

/// Registers norm_1, attention.qkv, attention.output, norm_2, mlp.up and mlp.down under `blocks`, as one rank of the
/// tensor axis holds them. `cross`: filled with norm_cross, cross.query, cross.key_value and cross.output, which a
/// block of a decoder has before norm_2.
GptBlockWeights add_block(torch::nn::Module& blocks, std::int64_t index, std::int64_t width, std::int64_t tensor_ranks,
                          CrossWeights* cross = nullptr);

/// run(x, range) over all blocks of `part`; backward runs those of `again` a second time, so their graph keeps a part
/// that shared pointers hold.
template <typename Run>
at::Tensor through_all(const torch::nn::Module& part, at::Tensor x, std::int64_t blocks,
                       const std::vector<BlockRange>& again, const RecomputeOptions& options, const Run& run) {
  std::int64_t next = 0;
  for (const BlockRange& range : again) {
    const auto again_run = [run, range, kept = part.weak_from_this().lock()](const at::Tensor& input) {
      return run(input, range);
    };
    x = recomputed(again_run, x, options);
    next = range.last;
  }
  return run(std::move(x), BlockRange{next, blocks});
}

/// Draws every matrix of the model, N(0, 0.02), in order, and keeps this share's part: weights do not depend on the
/// layout. Projections that end on the residual stream are scaled down by the square root of twice their stack's
/// blocks, except under init = "normal". Biases and norms stay as their modules made them.
void init_transformer(const ModelSpec& spec, const ModelShare& share, WeightSource& source, torch::nn::Module& module);

}  // namespace accrue
