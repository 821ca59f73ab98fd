// SPDX-License-Identifier: Apache-2.0
// The updates of Colossal-AI's optimizers that PyTorch's own do not have: each a pass over memory, those with a norm of
// each parameter two. Sums of squares are taken in double, in lanes of a fixed number, as square_sum().
// Source: colossalai.nn.optimizer; You et al., arXiv:1904.00962 (LAMB) and arXiv:1708.03888 (LARS).
#pragma once

#include <cmath>

#include "kernels/kernels.h"

namespace accrue {
namespace {

/// A MomentsStep in T.
template <typename T>
struct Moments {
  explicit Moments(const MomentsStep& step)
      : scale(static_cast<T>(step.grad_scale)),
        l2(static_cast<T>(step.l2)),
        beta1(static_cast<T>(step.beta1)),
        take1(static_cast<T>(step.take1)),
        beta2(static_cast<T>(step.beta2)),
        take2(static_cast<T>(1.0 - step.beta2)),
        eps(static_cast<T>(step.eps)),
        decay(static_cast<T>(step.weight_decay)),
        raise1(static_cast<T>(1.0 / step.correction1)),
        raise2(static_cast<T>(1.0 / step.correction2)) {}
  T direction(T p, T m, T v) const { return m * raise1 / (std::sqrt(v * raise2) + eps) + decay * p; }
  T scale, l2, beta1, take1, beta2, take2, eps, decay, raise1, raise2;
};

template <typename T>
void fused_adam_update(T* __restrict params, const T* __restrict grads, T* __restrict first, T* __restrict second,
                       std::int64_t n, const MomentsStep& step) {
  const Moments<T> by(step);
  const T lr = static_cast<T>(step.lr);
  for (std::int64_t i = 0; i < n; ++i) {
    const T p = params[i], grad = grads[i] * by.scale + by.l2 * p;
    const T m = by.beta1 * first[i] + by.take1 * grad;
    const T v = by.beta2 * second[i] + by.take2 * grad * grad;
    first[i] = m;
    second[i] = v;
    params[i] = p - lr * by.direction(p, m, v);
  }
}

template <typename T>
SquareSums lamb_moments(const T* __restrict params, const T* __restrict grads, T* __restrict first,
                        T* __restrict second, std::int64_t n, const MomentsStep& step) {
  const Moments<T> by(step);
  constexpr std::int64_t lanes = 16;
  double of_params[lanes] = {}, of_steps[lanes] = {};
  const auto one = [&](std::int64_t i, std::int64_t lane) __attribute__((always_inline)) {
    const T p = params[i], grad = grads[i] * by.scale + by.l2 * p;
    const T m = by.beta1 * first[i] + by.take1 * grad;
    const T v = by.beta2 * second[i] + by.take2 * grad * grad;
    first[i] = m;
    second[i] = v;
    const double wide = static_cast<double>(p), u = static_cast<double>(by.direction(p, m, v));
    of_params[lane] += wide * wide;
    of_steps[lane] += u * u;
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::int64_t lane = 0; lane < lanes; ++lane) one(i + lane, lane);
  for (; i < n; ++i) one(i, 0);
  SquareSums sums;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    sums.params += of_params[lane];
    sums.steps += of_steps[lane];
  }
  return sums;
}

template <typename T>
void lamb_apply(T* __restrict params, const T* __restrict first, const T* __restrict second, std::int64_t n,
                const MomentsStep& step, double rate) {
  const Moments<T> by(step);
  const T size = static_cast<T>(rate);
  for (std::int64_t i = 0; i < n; ++i) params[i] -= size * by.direction(params[i], first[i], second[i]);
}

template <typename T>
void fused_sgd_update(T* __restrict params, const T* __restrict grads, T* __restrict buffer, std::int64_t n,
                      const FusedSgdStep& step) {
  const T scale = static_cast<T>(step.grad_scale), lr = static_cast<T>(step.lr), l2 = static_cast<T>(step.l2);
  const T decay = static_cast<T>(step.weight_decay);
  if (buffer == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) params[i] -= lr * (grads[i] * scale + l2 * params[i] + decay * params[i]);
    return;
  }
  const T keep = static_cast<T>(step.keep), take = static_cast<T>(step.take);
  // The step is a mixture of gradient and buffer: the buffer alone, or with Nesterov's look ahead.
  const T of_grad = step.nesterov ? T(1) : T(0), of_buffer = step.nesterov ? static_cast<T>(step.momentum) : T(1);
  for (std::int64_t i = 0; i < n; ++i) {
    const T p = params[i], grad = grads[i] * scale + l2 * p;
    const T velocity = keep * buffer[i] + take * grad;
    buffer[i] = velocity;
    params[i] = p - lr * (of_grad * grad + of_buffer * velocity + decay * p);
  }
}

template <typename T>
void lars_update(T* __restrict params, const T* __restrict grads, T* __restrict buffer, std::int64_t n,
                 const LarsStep& step) {
  const T scale = static_cast<T>(step.grad_scale), lr = static_cast<T>(step.lr), most = T(10);
  const T decay = static_cast<T>(step.weight_decay), momentum = static_cast<T>(step.momentum);
  const auto decayed = [&](std::int64_t i) __attribute__((always_inline)) {
    const T d = grads[i] * scale + decay * params[i];
    return d < -most ? -most : d > most ? most : d;  // a NaN stays one
  };
  if (buffer == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) params[i] -= lr * decayed(i);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const T velocity = momentum * buffer[i] + decayed(i);
    buffer[i] = velocity;
    params[i] -= lr * velocity;
  }
}

}  // namespace
}  // namespace accrue
