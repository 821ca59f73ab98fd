// SPDX-License-Identifier: Apache-2.0
// Causal attention on packed projections, for all heads of all sequences: softmax(Q K^T / sqrt(D / H)) V per head.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace accrue {

struct Attended {
  at::Tensor out;       // [B, T, D]
  at::Tensor log_sums;  // [B, H, T]
};

/// Shapes: qkv [B, T, 3D] without its bias, bias [3D].
Attended attend(const at::Tensor& qkv, const at::Tensor& bias, std::int64_t heads);

/// Returns d loss / d qkv [B, T, 3D].
at::Tensor attend_backward(const at::Tensor& qkv, const at::Tensor& bias, std::int64_t heads, const Attended& attended,
                           const at::Tensor& dout);

}  // namespace accrue
