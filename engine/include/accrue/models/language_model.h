// SPDX-License-Identifier: Apache-2.0
// What the trainer asks of a model: a loss as (sum, count), so that ranks and micro-batches are normalised once, by a
// true count.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "accrue/models/batch.h"
#include "accrue/run/run_spec.h"

namespace accrue {

class TrainableModel : public torch::nn::Module {
 public:
  /// Forward and loss of one micro-batch. Thread: training.
  virtual LossSum loss(const Batch& batch) = 0;
};

/// Builds the spec's model with weights drawn from an explicit generator seeded by `seed` (the same on every rank and
/// machine). Parameter names and shapes equal parameter_shapes(spec).
std::shared_ptr<TrainableModel> make_model(const ModelSpec& spec, std::uint64_t seed);

}  // namespace accrue
