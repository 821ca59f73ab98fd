// SPDX-License-Identifier: Apache-2.0
// Rule by which the loss scale of float16 follows the gradients, as a value without tensors: smaller after an overflow,
// larger after many updates without one. GradScaler, the trainer and the Megatron Accelerator use it. Source: dynamic
// loss scaling after Micikevicius et al., Mixed Precision Training, section 3.2; growth and backoff as in
// torch.amp.GradScaler, hysteresis and the lowest scale as in Megatron-LM's DynamicGradScaler.
// Thread: a value; one thread at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "accrue/run/window/accumulation_window.h"

namespace accrue {

struct DynamicScale {
  static constexpr double first = 65536.0;

  double scale = 0.0;       ///< 0: no scaling
  std::int64_t growth = 0;  ///< updates without an overflow since the scale last changed
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;  ///< updates without an overflow before the scale grows
  double lowest = static_cast<double>(std::numeric_limits<float>::min());
  std::int64_t hysteresis = 1;  ///< since the last growth, this overflow and each later one shrink the scale
  std::int64_t overflows = 0;   ///< since the scale last grew; capped at the hysteresis

  bool enabled() const { return scale > 0.0; }
  double factor() const { return enabled() ? scale : 1.0; }
  /// Call after an update that was skipped because a gradient was not finite.
  void overflowed() {
    if (!enabled()) return;
    growth = 0;
    overflows = std::min(overflows + 1, hysteresis);
    if (overflows == hysteresis) scale = std::max(scale * backoff_factor, lowest);
  }
  /// Call after an update that was done.
  void stepped() {
    if (!enabled() || ++growth < growth_interval) return;
    growth = 0;
    overflows = 0;
    // The scale multiplies float32 losses and its inverse is float32: it stops growing where either would overflow.
    const double grown = scale * growth_factor;
    if (std::isfinite(static_cast<float>(grown)) && std::isnormal(static_cast<float>(1.0 / grown))) scale = grown;
  }
  /// Calls one of the two, or neither if there was nothing to update.
  void after(StepOutcome outcome) {
    if (outcome == StepOutcome::updated) stepped();
    if (outcome == StepOutcome::skipped_overflow) overflowed();
  }
};

}  // namespace accrue
