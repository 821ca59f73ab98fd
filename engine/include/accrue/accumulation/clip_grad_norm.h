// SPDX-License-Identifier: Apache-2.0
// Clipping by a norm over all gradients, and the interface of optimizers with scaled gradients, which must do it
// themselves.
// Thread: the training thread. Shapes: parameters and gradients of any shape; a norm is [].
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace accrue {

struct ClipNormOptions {
  double norm_type = 2.0;           ///< p; infinity for the largest element
  bool error_if_nonfinite = false;  ///< throw for a norm that is not finite, and clip nothing
};

/// Returns the gradients of those parameters that have one.
std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters);

/// Returns the common p-norm of `gradients` (at least one): a float64 scalar on the device of the first, without
/// waiting for it.
at::Tensor gradient_norm(const std::vector<at::Tensor>& gradients, double norm_type);

/// Scales the gradients of `parameters` in place, so that their common norm is at most max_norm; parameters without a
/// gradient are skipped. Returns the norm before, 0 without gradients; if it is not finite, the gradients are unusable.
/// Errors: throws std::runtime_error for such a norm with error_if_nonfinite.
/// Source: the role of torch.nn.utils.clip_grad_norm_ (Pascanu et al., On the difficulty of training recurrent neural
/// networks).
double clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm, const ClipNormOptions& options = {});

/// Clamps every element of the gradients of `parameters` to +-clip_value, in place.
void clip_grad_value(const std::vector<at::Tensor>& parameters, double clip_value);

/// An optimizer whose gradients are still scaled, such as mixed precision before its step, and which therefore clips
/// itself.
class ClipsGradNorm {
 public:
  virtual ~ClipsGradNorm() = default;
  virtual double clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm) = 0;
};

}  // namespace accrue
