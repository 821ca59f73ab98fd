// SPDX-License-Identifier: Apache-2.0
// Initial weights: drawn in float32, in module order, from a separate generator, then converted. So a model starts the
// same on every rank and in every dtype, independent of other random numbers.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "accrue/run/cost/model_share.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

class WeightSource {
 public:
  explicit WeightSource(std::uint64_t seed);
  /// Fills with U(-bound, bound).
  void uniform(at::Tensor& weight, double bound);
  /// Fills with N(0, std^2).
  void normal(at::Tensor& weight, double std);

 private:
  at::Generator generator_;
};

/// Shapes: weight [outputs, inputs], bias [outputs]. PyTorch's rule for a linear layer: weight and bias uniform within
/// 1 / sqrt(inputs). Other rules: zeros, or normal with standard deviation 0.02 and zero biases. `bias` may be
/// undefined.
void init_linear(WeightSource& source, WeightInit rule, at::Tensor& weight, at::Tensor& bias);

/// Returns the part of an undivided parameter that a share holds, in its module's shape.
at::Tensor part_of(const at::Tensor& whole, const ParameterShare& share);

/// Copies model.values, which lists the undivided model's parameters in order, row-major, over a share's parameters.
/// Errors: throws std::invalid_argument if the number of values is wrong.
void fill_with_values(const ModelSpec& model, const ModelShare& share, std::vector<at::Tensor> parameters);

at::ScalarType scalar_type(Dtype dtype);

}  // namespace accrue
