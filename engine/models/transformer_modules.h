// SPDX-License-Identifier: Apache-2.0
// Common code of the transformers: the modules of a block under PyTorch's names, and initial weights that do not depend
// on the division of a model.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "accrue/parallel/recompute.h"
#include "accrue/run/cost/model_share.h"
#include "models/affine.h"
#include "models/gpt_operators.h"
#include "models/weight_init.h"

namespace accrue {

/// Registers norm_1, attention.qkv (or grouped_qkv), attention.output, norm_2, mlp.up (or gate_up) and mlp.down under
/// `blocks`, as one rank of the tensor axis holds them; shapes as in GptBlockWeights and CrossWeights. `cross`:
/// receives norm_cross, cross.query, cross.key_value and cross.output, which a T5's decoder block has before norm_2.
GptBlockWeights add_block(torch::nn::Module& blocks, std::int64_t index, const BlockForm& form,
                          std::int64_t tensor_ranks, CrossWeights* cross = nullptr);

/// Runs run(x, range) over all blocks of `part`. Shapes: x [B, T, D] or rows [N, D] -> the same. Backward runs those of
/// `again` a second time, so their graph keeps `part` alive by shared pointers.
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

/// Draws every matrix of the model from N(0, 0.02), in order, and keeps this share's part, so weights do not depend on
/// the layout. Projections onto the residual stream are divided by the square root of twice their stack's blocks, which
/// keeps its variance independent of the depth; not under init = "normal". Biases and norms keep their modules' initial
/// values.
void init_transformer(const ModelSpec& spec, const ModelShare& share, WeightSource& source, torch::nn::Module& module);

}  // namespace accrue
