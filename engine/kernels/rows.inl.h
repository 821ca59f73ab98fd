// SPDX-License-Identifier: Apache-2.0
// Row-wise parts of a transformer block with the fewest passes over memory: LayerNorm, GELU (tanh form) with the bias
// before it, bias plus residual, sums over rows. A row of a few thousand numbers stays in the first-level cache, so a
// second read of it is free; each pass over the whole matrix is expensive.
#pragma once

#include "kernels/kernels.h"
#include "kernels/vec.inl.h"

namespace accrue {
namespace {

/// out = (x - mean) * scale * weight + bias. Forward ends with it and backward recomputes with it: the same bits. So
/// only two numbers per row are kept, not the output.
template <typename T>
void layer_norm_apply(const T* x, const T* weight, const T* bias, const T* mean, const T* scale, std::int64_t rows,
                      std::int64_t width, T* out) {
  for (std::int64_t row = 0; row < rows; ++row, x += width, out += width) {
    along_row<T>(width,
                 [&](auto get, auto put) { put(out, (get(x) - mean[row]) * scale[row] * get(weight) + get(bias)); });
  }
}

/// out = (x - mean) * scale * weight + bias, with scale = 1 / sqrt(variance + eps) of each row. Shapes: x, out
/// [rows, width]; mean, scale [rows].
template <typename T>
void layer_norm_forward(const T* x, const T* weight, const T* bias, std::int64_t rows, std::int64_t width, double eps,
                        T* out, T* mean, T* scale) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* const from = x + row * width;
    Vec<T> sum{};
    along_row<T>(width, [&](auto get, auto) { sum += get(from); });
    const T middle = lane_sum<T>(sum) / static_cast<T>(width);
    // Squares of differences in a second pass: E[x^2] - mean^2 would cancel digits in rows whose mean is large. The
    // last, partial vector is summed by number, because its empty lanes would each add mean^2.
    Vec<T> squares{};
    std::int64_t at = 0;
    for (; at + lanes<T> <= width; at += lanes<T>) {
      const Vec<T> d = load(from + at) - middle;
      squares += d * d;
    }
    T variance = lane_sum<T>(squares);
    for (; at < width; ++at) variance += (from[at] - middle) * (from[at] - middle);
    mean[row] = middle;
    // The biased variance, as in PyTorch.
    scale[row] = T(1) / std::sqrt(variance / static_cast<T>(width) + static_cast<T>(eps));
  }
  layer_norm_apply(x, weight, bias, mean, scale, rows, width, out);
}

/// dx = dy + d norm(x) / dx * dn. With z = (x - mean) * scale and g = dn * weight:
/// d norm / dx = scale * (g - mean(g) - z * mean(g z)). The two means remove from g what would move the row's mean and
/// variance, which the norm cancels. Source: Ba et al., arXiv:1607.06450. Shapes: as forward; sums [width].
template <typename T>
void layer_norm_backward(const T* dn, const T* x, const T* weight, const T* mean, const T* scale, const T* dy,
                         std::int64_t rows, std::int64_t width, T* dx, T* dweight, T* dbias, T* dy_sum) {
  for (std::int64_t row = 0; row < rows; ++row, dn += width, x += width, dy += width, dx += width) {
    const T middle = mean[row], factor = scale[row];
    Vec<T> sum_g{}, sum_gz{};
    along_row<T>(width, [&](auto get, auto put) {
      const Vec<T> grad = get(dn), g = grad * get(weight), z = (get(x) - middle) * factor;
      sum_g += g;
      sum_gz += g * z;
      put(dweight, get(dweight) + grad * z);
      put(dbias, get(dbias) + grad);
      put(dy_sum, get(dy_sum) + get(dy));
    });
    const T mean_g = lane_sum<T>(sum_g) / static_cast<T>(width), mean_gz = lane_sum<T>(sum_gz) / static_cast<T>(width);
    along_row<T>(width, [&](auto get, auto put) {
      const Vec<T> z = (get(x) - middle) * factor;
      put(dx, get(dy) + factor * (get(dn) * get(weight) - mean_g - z * mean_gz));
    });
  }
}

/// [rows, width] + [width].
template <typename T>
void add_bias(const T* x, const T* bias, std::int64_t rows, std::int64_t width, T* out) {
  for (std::int64_t row = 0; row < rows; ++row, x += width, out += width) {
    along_row<T>(width, [&](auto get, auto put) { put(out, get(x) + get(bias)); });
  }
}

/// sum [width] += the rows of x, in order.
template <typename T>
void column_sum(const T* x, std::int64_t rows, std::int64_t width, T* sum) {
  for (std::int64_t row = 0; row < rows; ++row, x += width) {
    along_row<T>(width, [&](auto get, auto put) { put(sum, get(sum) + get(x)); });
  }
}

// GELU's tanh form, x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), equals x sigmoid(2 u), which needs one
// exponential. Source: Hendrycks and Gimpel, arXiv:1606.08415.
constexpr double gelu_slope = 1.5957691216057308;  // 2 sqrt(2 / pi)
constexpr double gelu_cubic = 0.044715;

/// sigmoid(2 u) = 1 / (1 + exp(-2 u)). For a large negative x the gate is tiny or 0, never NaN.
template <typename T>
ACCRUE_INLINE Vec<T> gelu_gate(Vec<T> x) {
  const Vec<T> twice_u = x * (static_cast<T>(gelu_slope) + x * x * static_cast<T>(gelu_slope * gelu_cubic));
  return T(1) / (exponential(-twice_u) + T(1));
}

/// x += bias; out = gelu(x). The sum is stored, since backward needs the input of GELU. Shapes: x, out [rows, width],
/// with width = 4 D / t in a block; bias [width].
template <typename T>
void gelu_forward(T* x, const T* bias, std::int64_t rows, std::int64_t width, T* out) {
  for (std::int64_t row = 0; row < rows; ++row, x += width, out += width) {
    along_row<T>(width, [&](auto get, auto put) {
      const Vec<T> value = get(x) + get(bias);
      put(x, value);
      put(out, value * gelu_gate<T>(value));
    });
  }
}

/// grad *= gelu'(x), with gate = sigmoid(2 u): gelu' = gate + x gate (1 - gate) (2 u)'. out = gelu(x), grad_sum += the
/// sum of grad over the rows.
template <typename T>
void gelu_backward(const T* x, std::int64_t rows, std::int64_t width, T* grad, T* out, T* grad_sum) {
  for (std::int64_t row = 0; row < rows; ++row, x += width, grad += width, out += width) {
    along_row<T>(width, [&](auto get, auto put) {
      const Vec<T> value = get(x), gate = gelu_gate<T>(value), activated = value * gate;
      // (2 u)' = 2 sqrt(2 / pi) (1 + 3 * 0.044715 x^2).
      const Vec<T> slope = static_cast<T>(gelu_slope) + value * value * static_cast<T>(3 * gelu_slope * gelu_cubic);
      const Vec<T> passed = get(grad) * (gate + activated * (T(1) - gate) * slope);
      put(out, activated);
      put(grad, passed);
      put(grad_sum, get(grad_sum) + passed);
    });
  }
}

}  // namespace
}  // namespace accrue
