// SPDX-License-Identifier: Apache-2.0
// Shapes: x [..., D] is read as N rows of D. statistics [2, N]: all means, then all scales 1 / sqrt(variance + eps).
// Source: Ba et al., arXiv:1607.06450 (layer normalisation).
#include "models/fused_rows.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>

#include "kernels/kernels.h"
#include "models/buffer_pool.h"
#include "models/gpt_operators.h"
#include "models/row_tasks.h"

namespace accrue {

namespace {

/// rows = (x - mean) scale weight + bias.
template <typename T>
void norm_into(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const Normed& to) {
  const std::int64_t width = x.size(-1), rows = x.numel() / width;
  const T *const from = x.const_data_ptr<T>(), *const w = weight.const_data_ptr<T>(),
                 *const b = bias.const_data_ptr<T>();
  T *const out = to.rows.mutable_data_ptr<T>(), *const mean = to.statistics.mutable_data_ptr<T>();
  over_rows(rows, width, [&](std::int64_t begin, std::int64_t end) {
    block_kernels<T>().layer_norm_forward(from + begin * width, w, b, end - begin, width, norm_eps, out + begin * width,
                                          mean + begin, mean + rows + begin);
  });
}

/// The same without the two passes that find mean and scale. Both give the same bits, so backward sees the rows that
/// forward used.
template <typename T>
void norm_again_into(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     const at::Tensor& statistics, at::Tensor& to) {
  const std::int64_t width = x.size(-1), rows = x.numel() / width;
  const T *const from = x.const_data_ptr<T>(), *const w = weight.const_data_ptr<T>(),
                 *const b = bias.const_data_ptr<T>();
  const T* const mean = statistics.const_data_ptr<T>();
  T* const out = to.mutable_data_ptr<T>();
  over_rows(rows, width, [&](std::int64_t begin, std::int64_t end) {
    block_kernels<T>().layer_norm_apply(from + begin * width, w, b, mean + begin, mean + rows + begin, end - begin,
                                        width, out + begin * width);
  });
}

/// With z = (x - mean) scale and g = dn weight: dx = dy + scale (g - mean(g) - z mean(g z)), dweight = sum of dn z over
/// rows, dbias = sum of dn. The three column sums share one pass: each part of the rows has its own [3 D].
template <typename T>
NormGradient norm_gradient_of(const at::Tensor& dn, const at::Tensor& x, const at::Tensor& weight,
                              const at::Tensor& statistics, const at::Tensor& dy) {
  const std::int64_t width = x.size(-1), rows = x.numel() / width;
  const T *const up = dn.const_data_ptr<T>(), *const from = x.const_data_ptr<T>(),
                 *const w = weight.const_data_ptr<T>();
  const T *const mean = statistics.const_data_ptr<T>(), *const beside = dy.const_data_ptr<T>();
  NormGradient result{.x = activation_pool().take_like(x)};
  T* const out = result.x.mutable_data_ptr<T>();
  const auto sums = summed_over_rows<T>(rows, 3 * width, [&](std::int64_t begin, std::int64_t end, T* part) {
    const std::int64_t at = begin * width;
    block_kernels<T>().layer_norm_backward(up + at, from + at, w, mean + begin, mean + rows + begin, beside + at,
                                           end - begin, width, out + at, part, part + width, part + 2 * width);
  });
  result.weight = tensor_of(sums, 0, width);
  result.bias = tensor_of(sums, width, width);
  result.dy_sum = tensor_of(sums, 2 * width, width);
  return result;
}

/// [N, D] + [D].
template <typename T>
void plus_bias_into(const at::Tensor& x, const at::Tensor& bias, at::Tensor& to) {
  const std::int64_t width = x.size(-1);
  const T *const from = x.const_data_ptr<T>(), *const b = bias.const_data_ptr<T>();
  T* const out = to.mutable_data_ptr<T>();
  over_rows(x.numel() / width, width, [&](std::int64_t begin, std::int64_t end) {
    block_kernels<T>().add_bias(from + begin * width, b, end - begin, width, out + begin * width);
  });
}

}  // namespace

Normed norm_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  Normed normed{.rows = activation_pool().take_like(x),
                .statistics = at::empty({2, x.numel() / x.size(-1)}, x.options())};
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "norm_rows", [&] { norm_into<scalar_t>(x, weight, bias, normed); });
  return normed;
}

at::Tensor norm_again(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const at::Tensor& statistics) {
  at::Tensor rows = activation_pool().take_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "norm_again",
                             [&] { norm_again_into<scalar_t>(x, weight, bias, statistics, rows); });
  return rows;
}

NormGradient norm_gradient(const at::Tensor& dn, const at::Tensor& x, const at::Tensor& weight,
                           const at::Tensor& statistics, const at::Tensor& dy) {
  return AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "norm_gradient",
                                    [&] { return norm_gradient_of<scalar_t>(dn, x, weight, statistics, dy); });
}

at::Tensor plus_bias(const at::Tensor& x, const at::Tensor& bias) {
  at::Tensor sum = activation_pool().take_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "plus_bias", [&] { plus_bias_into<scalar_t>(x, bias, sum); });
  return sum;
}

}  // namespace accrue
