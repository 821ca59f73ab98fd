// SPDX-License-Identifier: Apache-2.0
// Clipping by the 2-norm over all gradients, and who must be asked to do it where gradients are scaled.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace accrue {

/// Scales the gradients of `parameters`, in place, so that their common 2-norm is at most max_norm; parameters without
/// a gradient are left out. Returns the norm before; where that is not finite, what is left in the gradients is of no
/// use. Source: the role of torch.nn.utils.clip_grad_norm_ (Pascanu et al., On the difficulty of training recurrent
/// neural networks).
double clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm);

/// An optimizer whose gradients are not yet in their own units, such as mixed precision before its step: it clips.
class ClipsGradNorm {
 public:
  virtual ~ClipsGradNorm() = default;
  virtual double clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm) = 0;
};

}  // namespace accrue
