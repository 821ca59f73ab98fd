// SPDX-License-Identifier: Apache-2.0
// LayerNorm for the fused functions: forward with its statistics, recomputation from them, and backward that adds to a
// residual.
#pragma once

#include <ATen/core/Tensor.h>

namespace accrue {

struct Normed {
  at::Tensor rows;        // normalised, in the shape of x
  at::Tensor statistics;  // [2, rows]: each row's mean and 1 / standard deviation
};

/// Shapes: x [..., D], weight and bias [D].
Normed norm_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
/// Returns the same output, recomputed from stored statistics.
at::Tensor norm_again(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const at::Tensor& statistics);

struct NormGradient {
  at::Tensor x;       // [..., D]: dy + the norm's gradient of dn
  at::Tensor weight;  // [D]
  at::Tensor bias;    // [D]
  at::Tensor dy_sum;  // [D]: dy summed over rows, the bias gradient of a projection whose output gradient is dy
};
/// dn: gradient of the normed rows. dy: that of the residual beside the norm. Shapes: both as x, [..., D].
NormGradient norm_gradient(const at::Tensor& dn, const at::Tensor& x, const at::Tensor& weight,
                           const at::Tensor& statistics, const at::Tensor& dy);

/// x + bias, row by row.
at::Tensor plus_bias(const at::Tensor& x, const at::Tensor& bias);

}  // namespace accrue
