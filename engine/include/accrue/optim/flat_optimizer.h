// SPDX-License-Identifier: Apache-2.0
// Optimizers on flat memory: parameters, gradients and each moment are one tensor, on one device. An OptimizerSegment
// has the options of one parameter; one pass updates adjacent segments with equal options. Parity tests compare the
// results with torch::optim.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

/// One parameter, or this rank's part of one, in the flat space.
struct OptimizerSegment {
  std::string name;           ///< the module's name of it
  FlatRange range;            ///< its elements, without padding
  double weight_decay = 1.0;  ///< factor of the optimizer's weight decay; 0 for biases and norms
  double lr = 1.0;            ///< factor of the learning rate
  bool decoupled = false;     ///< its base rate is decoupled_lr
  bool tensor_split = false;  ///< the ranks of the tensor axis hold different parts of it; otherwise each has a copy
  bool shared = false;        ///< a copy of a parameter that another pipeline stage owns (tied embeddings)
};

/// Rates of one update, before a segment's own factors. Weight decay is relative to the rate: where it is decoupled, an
/// update shrinks a parameter by the factor 1 - lr weight_decay.
struct UpdateRates {
  UpdateRates(double rate) : lr(rate), decoupled_lr(rate) {}  // NOLINT(google-explicit-constructor): one rate for all
  double lr;
  double decoupled_lr;                 ///< for the embeddings and the output layer
  std::optional<double> weight_decay;  ///< default: the spec's
  /// L2 norm of the scaled gradient of the whole model, by which FusedLAMB clips. Default: that of the given ranges.
  std::optional<double> gradient_norm;
};

/// Completes sums of squares, [segments, 2] in float64 on the optimizer's device: each row is this rank's part of the
/// sums of a segment's parameter, and becomes that of the whole parameter. May be a collective.
using CompleteSums = std::function<void(at::Tensor&)>;

class FlatOptimizer {
 public:
  virtual ~FlatOptimizer() = default;
  /// Makes one update of params by grads (both [numel], same dtype). grad_scale multiplies the gradients as they are
  /// read (division and clip factor in one); grads stay unchanged. Only elements in `ranges` are updated: the
  /// parameters that have a gradient, or this rank's shard. Ranges ascend and do not overlap. Thread: training. Errors:
  /// throws std::invalid_argument for tensors of another size, type or device, and for ranges that overlap, descend or
  /// are outside.
  virtual void step(at::Tensor& params, const at::Tensor& grads, const UpdateRates& rates, double grad_scale,
                    std::span<const FlatRange> ranges) = 0;
  /// Does the same for the whole flat space.
  void step(at::Tensor& params, const at::Tensor& grads, const UpdateRates& rates, double grad_scale);

  /// For ranks that hold parts of parameters: completes the per-parameter norms of LAMB and LARS. Called once in every
  /// step() of theirs, for any ranges. By default each segment is a whole parameter.
  virtual void set_complete_sums(CompleteSums /*complete*/) {}

  virtual const std::vector<OptimizerSegment>& segments() const = 0;  ///< by offset
  /// Named state tensors, [numel] each: views of the live state.
  virtual std::vector<std::pair<std::string, at::Tensor>> state() = 0;
  /// Bytes of the state in files.
  virtual std::int64_t bytes_in_files() const { return 0; }
  /// Number of updates of each segment, [segments] int64: a view of the live counts, which Adam's bias correction
  /// reads.
  virtual at::Tensor segment_steps() = 0;
  virtual std::int64_t steps() const = 0;  ///< calls of step()
  /// Sets the count of calls; segment_steps() is restored separately.
  virtual void set_steps(std::int64_t steps) = 0;
};

/// Makes the optimizer of a flat space of `numel` elements. Its state has moments_of(spec) tensors, [numel] of dtype
/// each, zeros at first. Errors: throws std::invalid_argument for segments that overlap or are outside numel, and for a
/// dtype that is neither float32 nor float64.
std::unique_ptr<FlatOptimizer> make_flat_optimizer(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments,
                                                   std::int64_t numel, at::ScalarType dtype,
                                                   at::Device device = at::kCPU);

/// Sum of squares over ranges of a flat tensor, in double: one segment for a layer-wise norm, the ranges that a rank
/// counts for a global one.
double square_sum(const at::Tensor& flat, std::span<const FlatRange> ranges);
/// L2 norm of a flat gradient [numel], in double. Non-finite values give a non-finite norm.
double flat_norm(const at::Tensor& grads);

}  // namespace accrue
