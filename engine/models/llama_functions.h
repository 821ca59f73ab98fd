// SPDX-License-Identifier: Apache-2.0
// RMS norm and SwiGLU as one autograd function each: backward recomputes what LibTorch's operators would keep between
// them. Every dtype and device.
#pragma once

#include <ATen/core/Tensor.h>

namespace accrue {

/// x / sqrt(mean(x^2) + eps) * weight over the last dim. Half types are squared and summed in float32, and rounded
/// before the weight, as in Hugging Face's Llama. Shapes: x [..., D], weight [D] -> [..., D]. Source: Zhang and
/// Sennrich, arXiv:1910.07467.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

/// silu(gate) * up. Shapes: hidden [..., 2 I], the gate's numbers before the other's -> [..., I]. Source: Shazeer,
/// arXiv:2002.05202.
at::Tensor swiglu(const at::Tensor& hidden);

}  // namespace accrue
