// SPDX-License-Identifier: Apache-2.0
// Judgement of a complete gradient. The order is the same in a run and in a Megatron Accelerator: unscale
// (unscaled()), take the norm, leave the update out if that is not finite, clip. They differ in where
// they apply the factors: a run in the optimizer's own pass over memory, an Accelerator to the gradients.
#pragma once

#include <cmath>
#include <optional>

#include "accrue/update/dynamic_scale.h"
#include "update/clip_factor.h"

namespace accrue {

/// Divides by the scale: returns the factor of the gradient of scaled losses, for that of the losses times `value`.
inline double unscaled(const DynamicScale& scale, double value = 1.0) {
  return value / scale.factor();
}

/// Megatron-LM's name for the time of clipping.
inline constexpr const char* clip_timer = "optimizer-clip-main-grad";

/// Names the time of the norm. It finds an overflow if losses are scaled, and otherwise determines the clipping;
/// nullptr if neither needs it.
inline const char* timer_of_norm(bool scaled, bool clips) {
  if (scaled) return "optimizer-unscale-and-check-inf";
  return clips ? clip_timer : nullptr;
}

struct Judgement {
  std::optional<double> norm;  ///< of the unscaled gradient, before clipping; unset: nothing needed it
  double clip = 1.0;           ///< factor of clipping by norm; meaningless if the norm is not finite
  bool finite() const { return !norm || std::isfinite(*norm); }
};

/// `max_norm`: bound of the norm; 0: no clipping.
inline Judgement judge_norm(double norm, double max_norm) {
  return {.norm = norm, .clip = max_norm > 0.0 ? clip_factor(norm, max_norm) : 1.0};
}

}  // namespace accrue
