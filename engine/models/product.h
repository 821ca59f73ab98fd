// SPDX-License-Identifier: Apache-2.0
// Matrix products of the fused functions. Each uses our own tiles or LibTorch's routine, chosen by its shape and the
// CPUs of all ranks alone, so all ranks choose the same. Measured with tests/bench/product_shapes (a CPU with AVX-512,
// one thread, float, our rate over LibTorch's; three products of a linear layer: output, input gradient, weight
// gradient):
//
//   tokens  in x out     output  input grad  weight grad
//      16   384 x 1536    0.86      0.70        1.22
//      64   384 x 1536    0.92      0.92        1.11
//      96   384 x 384     1.05      1.08        1.07
//     256   384 x 1536    1.02      1.03        1.11
//    1024   384 x 1536    1.09      1.06        1.06
//    1024    32 x 32      1.03      1.02        0.89
//    4096   384 x 1536    1.14      1.17        1.06
//
// A weight gradient has as many rows as the layer has outputs, the other results as many as there are tokens: our tiles
// win if the result has 96 rows or more. On an Emerald Rapids the ratios were 0.44 to 1.04, because LibTorch calls MKL,
// which is tuned for Intel's CPUs; there LibTorch makes all products. AVX2 and generic code were not measured and also
// use LibTorch.
//
// Both make a large product on lent threads (lent_threads.h) with the same bits as on the rank's own. Our tiles add in
// the same order for any number of threads. LibTorch's routine rounds differently with the number of threads for some
// shapes, so it is called for pieces of the rows. For a shape whose pieces it rounds differently from the whole, it
// makes the whole on the rank's own threads.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/kernels.h"

namespace accrue {

enum class ProductPath { library, tiles };

/// Path of a product whose result has `rows` rows. tiles_pay: tiles are faster on the CPU of every rank.
constexpr ProductPath product_path(std::int64_t rows, bool tiles_pay) {
  return tiles_pay && rows >= 96 ? ProductPath::tiles : ProductPath::library;
}

/// a b in pooled memory. Shapes: [m, k] and [k, n] with any strides -> [m, n].
at::Tensor product(const at::Tensor& a, const at::Tensor& b);
/// into = a b.
void product_into(at::Tensor& into, const at::Tensor& a, const at::Tensor& b);
void product_into(at::Tensor& into, const at::Tensor& a, const at::Tensor& b, ProductPath path);
/// Returns the gradient of a layer's weight, dy^T x; undefined if it was added to the sum of the weight's gradients
/// instead (parallel/direct_gradient.h). Shapes: weight [outputs, inputs], dy [tokens, outputs], x [tokens, inputs].
at::Tensor weight_gradient(const at::Tensor& weight, const at::Tensor& dy, const at::Tensor& x);
/// into += a b.
void add_product(at::Tensor& into, const at::Tensor& a, const at::Tensor& b);
void add_product(at::Tensor& into, const at::Tensor& a, const at::Tensor& b, ProductPath path);
/// Whether LibTorch's routine makes into = a b, or with `add` into += a b, in pieces on the currently lent threads.
bool library_divides(const at::Tensor& into, const at::Tensor& a, const at::Tensor& b, bool add);

}  // namespace accrue
