// SPDX-License-Identifier: Apache-2.0
// What the trainer asks of a model: a loss as (sum, count), so that ranks and micro-batches are normalised once, by a
// true count.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "accrue/run/run_spec.h"

namespace accrue {

/// A micro-batch as the data loaders make it.
/// Shapes: tokens: inputs [B, T] int64, targets [B, T] int64 (ignored where -100). x/y: inputs [B, I], targets [B, O].
/// Ragged sequences: inputs [B, T, 1], targets [B, T] int64.
struct Batch {
  at::Tensor inputs;
  at::Tensor targets;
  std::int64_t samples = 0;  ///< rows that count (0 for an empty micro-step)
  std::int64_t items = 0;    ///< what the loss will sum over: tokens, or samples * outputs
};

/// Sum and count of the same items. Shapes: sum [] in the accumulation dtype, with a graph. mean = sum / count.
struct LossSum {
  at::Tensor sum;
  std::int64_t count = 0;
};

class TrainableModel : public torch::nn::Module {
 public:
  /// Forward and loss of one micro-batch. Thread: training.
  virtual LossSum loss(const Batch& batch) = 0;
};

/// Builds the spec's model with weights drawn from an explicit generator seeded by `seed` (the same on every rank and
/// machine). Parameter names and shapes equal parameter_shapes(spec).
std::shared_ptr<TrainableModel> make_model(const ModelSpec& spec, std::uint64_t seed);

}  // namespace accrue
