// SPDX-License-Identifier: Apache-2.0
// ClipGrad: the `clip_grad` of an OptimWrapper, by norm or by value. It belongs to the update: nothing else calls it.
// Thread: the training thread. Shapes: parameters of any. Source: MMEngine's OptimWrapper, whose kinds are those of
// torch.nn.utils.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

namespace accrue::mmengine {

struct ClipGrad {
  enum class Type { norm, value };
  Type type = Type::norm;
  double max_norm = 0.0;    ///< type norm: the gradients' common norm is at most this afterwards; above 0
  double norm_type = 2.0;   ///< type norm: p; infinity for the largest element
  double clip_value = 0.0;  ///< type value: each element lies within +-this afterwards; above 0
  bool error_if_nonfinite = false;
};

/// Errors: throws std::invalid_argument where the bound of its type is not above 0, which would zero every gradient.
void check(const ClipGrad& clip);

/// Clips the gradients that are there, in place. The norm before clipping, for type norm and where there is a gradient.
/// Errors: throws std::runtime_error for a norm that is not finite, if error_if_nonfinite says so.
std::optional<double> clip_gradients(const ClipGrad& clip, const std::vector<at::Tensor>& parameters);

}  // namespace accrue::mmengine
