// SPDX-License-Identifier: Apache-2.0
// Conversion of the settings of Colossal-AI's optimizers into the factors of a pass. The flat optimizers and the
// classes share it.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/kernels.h"

namespace accrue {

/// Settings that the Adams and the LAMBs share. All factors stay in double until a rule rounds them to the type of the
/// computation: 1 - beta2^t cancels leading digits while t is small.
struct MomentsSettings {
  double lr = 0.0;
  double beta1 = 0.0;
  double beta2 = 0.0;
  double eps = 0.0;
  double weight_decay = 0.0;
  bool adamw_mode = true;  ///< decay decoupled from the gradient
  bool bias_correction = true;
  bool grad_averaging = true;
};

/// The CPU's Adam: sqrt(v) is divided by the root of its correction, and decay comes first. Mathematically the step of
/// moments_step(): m / c1 / (sqrt(v) / sqrt(c2) + eps) = (m / c1) / (sqrt(v / c2) + eps), with c = 1 - beta^t. They
/// round differently, as upstream's two kernels do. steps: t, from 1.
inline AdamWStep adamw_step(const MomentsSettings& by, std::int64_t steps, double grad_scale) {
  const auto t = static_cast<double>(steps);
  AdamWStep step{.lr = by.lr, .beta1 = by.beta1, .beta2 = by.beta2, .eps = by.eps, .grad_scale = grad_scale};
  if (by.bias_correction) {
    step.correction1 = 1.0 - std::pow(by.beta1, t);
    step.correction2_root = std::sqrt(1.0 - std::pow(by.beta2, t));
  }
  (by.adamw_mode ? step.weight_decay : step.l2) = by.weight_decay;
  return step;
}

/// FusedAdam and the LAMBs: v is corrected before its root, and decay is part of the step. take1 is upstream's beta3:
/// without grad_averaging m sums gradients, m = beta1 m + g', and is 1 / (1 - beta1) times as long.
inline MomentsStep moments_step(const MomentsSettings& by, std::int64_t steps, double grad_scale) {
  const auto t = static_cast<double>(steps);
  MomentsStep step{.lr = by.lr,
                   .beta1 = by.beta1,
                   .take1 = by.grad_averaging ? 1.0 - by.beta1 : 1.0,
                   .beta2 = by.beta2,
                   .eps = by.eps,
                   .grad_scale = grad_scale};
  if (by.bias_correction) {
    step.correction1 = 1.0 - std::pow(by.beta1, t);
    step.correction2 = 1.0 - std::pow(by.beta2, t);
  }
  (by.adamw_mode ? step.weight_decay : step.l2) = by.weight_decay;
  return step;
}

/// Lamb corrects the rate instead of the moments, so eps is not corrected:
/// lr * sqrt(1 - beta2^t) / (1 - beta1^t), with t = steps. Source of this order: Kingma and Ba, arXiv:1412.6980, the
/// end of section 2.
inline double lamb_rate(const MomentsSettings& by, std::int64_t steps) {
  if (!by.bias_correction) return by.lr;
  const auto t = static_cast<double>(steps);
  return by.lr * std::sqrt(1.0 - std::pow(by.beta2, t)) / (1.0 - std::pow(by.beta1, t));
}

/// r = |p| / |u|; 1 if either is 0, so that a parameter can leave zero. You et al. (arXiv:1904.00962, algorithm 2) have
/// phi(|p|) / |u|; upstream's phi is the identity. A NaN in either norm makes the whole step NaN, so that it is seen.
inline double trust_ratio(const SquareSums& sums) {
  if (sums.params == 0.0 || sums.steps == 0.0) return 1.0;
  return std::sqrt(sums.params) / std::sqrt(sums.steps);
}

/// Factor of FusedLAMB's gradients: its own clipping, min(1, max_grad_norm / norm) by their common norm. 0: none. In a
/// run it comes after optimizer.clip_norm: the norm is that of gradients which the run has divided and clipped.
inline double lamb_clip(double norm, double max_grad_norm) {
  return max_grad_norm > 0.0 && norm > max_grad_norm ? max_grad_norm / norm : 1.0;
}

/// Settings of FusedSGD, as its options name them.
struct SgdSettings {
  double lr = 0.0;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  bool wd_after_momentum = false;
};

/// b = (first ? g' : momentum b + (1 - dampening) g'). `first`: the parameter's first update, whose rule is the
/// general one with keep = 0 and take = 1. wd_after_momentum: the decay joins the step and not the buffer.
inline FusedSgdStep fused_sgd_step(const SgdSettings& by, bool first, double grad_scale) {
  FusedSgdStep step{.lr = by.lr,
                    .keep = first ? 0.0 : by.momentum,
                    .take = first ? 1.0 : 1.0 - by.dampening,
                    .momentum = by.momentum,
                    .nesterov = by.nesterov,
                    .grad_scale = grad_scale};
  (by.wd_after_momentum ? step.weight_decay : step.l2) = by.weight_decay;
  return step;
}

struct LarsSettings {
  double lr = 0.0;
  double momentum = 0.0;
  double eeta = 0.0;
  double weight_decay = 0.0;
  double epsilon = 0.0;
  bool lars = true;
};

/// With lars the rate is lr * min(50, eeta |p| / (|g| + weight_decay |p| + epsilon)), or lr if |p| or |g| is 0. Without
/// lars there is neither a ratio nor decay; the gradient is still clamped to [-10, 10], as upstream. `sums`: of the
/// parameters and of the unscaled gradients; read only with lars. Source of the ratio: You et al., arXiv:1708.03888,
/// algorithm 1; the limits are upstream's. A NaN in a norm fails the comparison below and leaves the ratio at 1.
inline LarsStep lars_step(const LarsSettings& by, const SquareSums& sums, double grad_scale) {
  LarsStep step{.lr = by.lr, .momentum = by.momentum, .grad_scale = grad_scale};
  if (!by.lars) return step;
  step.weight_decay = by.weight_decay;
  const double of_params = std::sqrt(sums.params), of_grads = std::sqrt(sums.steps) * std::abs(grad_scale);
  if (!(of_params > 0.0 && of_grads > 0.0)) return step;
  const double ratio = by.eeta * of_params / (of_grads + by.weight_decay * of_params + by.epsilon);
  step.lr *= ratio > 50.0 ? 50.0 : ratio;
  return step;
}

}  // namespace accrue
