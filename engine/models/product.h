// SPDX-License-Identifier: Apache-2.0
// Matrix products of the fused functions.
#pragma once

#include <ATen/core/Tensor.h>

namespace accrue {

/// a b in pooled memory. Shapes: [m, k] and [k, n] with any strides -> [m, n].
at::Tensor product(const at::Tensor& a, const at::Tensor& b);
/// into = a b.
void product_into(at::Tensor& into, const at::Tensor& a, const at::Tensor& b);
/// into += a b.
void add_product(at::Tensor& into, const at::Tensor& a, const at::Tensor& b);

}  // namespace accrue
