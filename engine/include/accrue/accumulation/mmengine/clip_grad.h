// SPDX-License-Identifier: Apache-2.0
// ClipGrad: the `clip_grad` of an OptimWrapper, by norm or by value. Only the update calls it. Thread: the training
// thread. Shapes: parameters of any shape. Source: MMEngine's OptimWrapper, whose kinds are those of torch.nn.utils.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

namespace accrue::mmengine {

struct ClipGrad {
  enum class Type { norm, value };
  Type type = Type::norm;
  double max_norm = 0.0;    ///< type norm: upper bound of the gradients' common norm; above 0
  double norm_type = 2.0;   ///< type norm: p; infinity for the largest element
  double clip_value = 0.0;  ///< type value: upper bound of each element's absolute value; above 0
  bool error_if_nonfinite = false;
};

/// Errors: throws std::invalid_argument if the bound of its type is not above 0, which would zero every gradient.
void check(const ClipGrad& clip);

/// Clips the existing gradients in place. Returns the norm before clipping, for type norm and if there is a gradient.
/// Errors: throws std::runtime_error for a norm that is not finite with error_if_nonfinite.
std::optional<double> clip_gradients(const ClipGrad& clip, const std::vector<at::Tensor>& parameters);

}  // namespace accrue::mmengine
