// SPDX-License-Identifier: Apache-2.0
// Optimizers on flat memory: parameters, gradients and moments are one tensor each per decay group, so an update is one
// fused pass. Held equal to torch::optim by parity tests.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/run_spec.h"
#include "accrue/run/shard_layout.h"

namespace accrue {

/// A contiguous run of the flat parameter space with one weight decay.
struct FlatSegment {
  FlatRange range;
  double weight_decay = 0.0;
};

class FlatOptimizer {
 public:
  virtual ~FlatOptimizer() = default;
  /// One update of params by grads (both [numel], same dtype), at learning rate lr. grads are multiplied by grad_scale
  /// on the way (normalisation and clip factor in one). `unreached`: parameters without a gradient, each one's whole
  /// range, as the same range every time. They keep their values and moments, and the update does not count for them.
  /// Thread: training.
  virtual void step(at::Tensor& params, const at::Tensor& grads, double lr, double grad_scale,
                    const std::vector<FlatRange>& unreached = {}) = 0;
  /// Named state tensors ([numel] each) and the step count, for checkpoints: free of the parallel layout.
  virtual std::vector<std::pair<std::string, at::Tensor>> state() = 0;
  /// Updates so far; of a parameter that was left out, those that it was not.
  virtual std::int64_t steps() const = 0;
  virtual void set_steps(std::int64_t steps) = 0;
};

std::unique_ptr<FlatOptimizer> make_flat_optimizer(const OptimizerSpec& spec, std::vector<FlatSegment> segments,
                                                   std::int64_t numel, at::ScalarType dtype);

/// L2 norm over a flat gradient, in double. Non-finite values come through.
double flat_norm(const at::Tensor& grads);
/// The factor clip_grad_norm_ multiplies by: min(1, max_norm / (norm + 1e-6)); 1 where max_norm is 0.
double clip_factor(double norm, double max_norm);

}  // namespace accrue
