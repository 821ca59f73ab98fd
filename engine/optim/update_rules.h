// SPDX-License-Identifier: Apache-2.0
// Conversion of the settings of Colossal-AI's optimizers into the factors of a pass. The flat optimizers and the
// classes share it.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/kernels.h"

namespace accrue {

/// Settings that the Adams and the LAMBs share.
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
/// round differently, as upstream's two kernels do.
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

/// FusedAdam and the LAMBs: v is corrected before its root, and decay is part of the step.
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
/// lr * sqrt(1 - beta2^t) / (1 - beta1^t), with t = steps.
inline double lamb_rate(const MomentsSettings& by, std::int64_t steps) {
  if (!by.bias_correction) return by.lr;
  const auto t = static_cast<double>(steps);
  return by.lr * std::sqrt(1.0 - std::pow(by.beta2, t)) / (1.0 - std::pow(by.beta1, t));
}

/// r = |p| / |u|; 1 if either is 0, so that a parameter can leave zero.
inline double trust_ratio(const SquareSums& sums) {
  if (sums.params == 0.0 || sums.steps == 0.0) return 1.0;
  return std::sqrt(sums.params) / std::sqrt(sums.steps);
}

/// Factor of FusedLAMB's gradients: its own clipping, min(1, max_grad_norm / norm) by their common norm. 0: none.
inline double lamb_clip(double norm, double max_grad_norm) {
  return max_grad_norm > 0.0 && norm > max_grad_norm ? max_grad_norm / norm : 1.0;
}

struct SgdSettings {
  double lr = 0.0;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  bool wd_after_momentum = false;
};

/// b = (first ? g' : momentum b + (1 - dampening) g'). `first`: the parameter's first update.
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
/// parameters and of the unscaled gradients; read only with lars.
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
