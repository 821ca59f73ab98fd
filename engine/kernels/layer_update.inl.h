// SPDX-License-Identifier: Apache-2.0
// Updates of Colossal-AI's optimizers that PyTorch lacks: each is one pass over memory, or two with a norm per
// parameter. Sums of squares are taken in double, in a fixed number of lanes, like square_sum().
#pragma once

#include "kernels/flat_update.inl.h"

namespace accrue {
namespace {

/// params, grads, first, second [n].
template <typename T>
void fused_adam_update(T* __restrict params, const T* __restrict grads, T* __restrict first, T* __restrict second,
                       std::int64_t n, const MomentsStep& step) {
  const FusedAdamRule<T> rule(step);
  for (std::int64_t i = 0; i < n; ++i) rule(params[i], grads[i], first[i], second[i]);
}

/// First half of LAMB: new moments, and |p|^2 and |u|^2 of these n numbers. A rank may hold only a part of a parameter;
/// the caller adds the parts before it takes the roots.
template <typename T>
SquareSums lamb_moments(const T* __restrict params, const T* __restrict grads, T* __restrict first,
                        T* __restrict second, std::int64_t n, const MomentsStep& step) {
  const MomentsRule<T> rule(step);
  // Independent sums: one order of additions on every machine, whatever its vectors' width.
  constexpr std::int64_t lanes = 16;
  double of_params[lanes] = {}, of_steps[lanes] = {};
  const auto one = [&](std::int64_t i, std::int64_t lane) __attribute__((always_inline)) {
    const T p = params[i];
    const double wide = static_cast<double>(p), u = static_cast<double>(rule(p, grads[i], first[i], second[i]));
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

/// Second half: p -= rate u, with u from the moments again: the same function of the same numbers as in the first half,
/// so that |u| is the norm of the step that is taken. Half-precision moments must therefore stay wide between the
/// halves.
template <typename T>
void lamb_apply(T* __restrict params, const T* __restrict first, const T* __restrict second, std::int64_t n,
                const MomentsStep& step, double rate) {
  const LambRule<T> rule(step, rate);
  for (std::int64_t i = 0; i < n; ++i) rule(params[i], first[i], second[i]);
}

/// buffer [n], or null without momentum.
template <typename T>
void fused_sgd_update(T* __restrict params, const T* __restrict grads, T* __restrict buffer, std::int64_t n,
                      const FusedSgdStep& step) {
  buffered_update(params, grads, buffer, n, FusedSgdRule<T>(step));
}

/// As fused_sgd_update(). step.lr holds the trust ratio, so this pass needs no norm.
template <typename T>
void lars_update(T* __restrict params, const T* __restrict grads, T* __restrict buffer, std::int64_t n,
                 const LarsStep& step) {
  buffered_update(params, grads, buffer, n, LarsRule<T>(step));
}

}  // namespace
}  // namespace accrue
