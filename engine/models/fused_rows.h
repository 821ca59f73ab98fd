// SPDX-License-Identifier: Apache-2.0
// LayerNorm for the fused functions: forward with its statistics, recomputation from them, and backward that adds to a
// residual.
#pragma once

#include <ATen/core/Tensor.h>

namespace accrue {

/// Mean and 1 / standard deviation of each row: [2, rows].
struct Normed {
  at::Tensor rows;
  at::Tensor statistics;
};

Normed norm_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
/// Returns the same output, recomputed from stored statistics.
at::Tensor norm_again(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const at::Tensor& statistics);

struct NormGradient {
  at::Tensor x;       // dy + the norm's gradient of dn
  at::Tensor weight;  // [D]
  at::Tensor bias;    // [D]
  at::Tensor dy_sum;  // [D]: dy summed over rows, the bias gradient of a projection whose output gradient is dy
};
NormGradient norm_gradient(const at::Tensor& dn, const at::Tensor& x, const at::Tensor& weight,
                           const at::Tensor& statistics, const at::Tensor& dy);

/// x + bias, row by row.
at::Tensor plus_bias(const at::Tensor& x, const at::Tensor& bias);

}  // namespace accrue
