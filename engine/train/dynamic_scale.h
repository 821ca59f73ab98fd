// SPDX-License-Identifier: Apache-2.0
// The loss scale of float16, as a value: halved by an update that overflowed, doubled after 2000 without. The same
// rule as accrue::GradScaler's, kept here without tensors because the trainer folds the division into its one pass.
// Source: dynamic loss scaling after Micikevicius et al., Mixed Precision Training (2018).
#pragma once

#include <cstdint>

#include "accrue/run/run_spec.h"

namespace accrue {

struct DynamicScale {
  static constexpr double first = 65536.0;
  static constexpr std::int64_t growth_interval = 2000;
  /// Below it the gradients overflow by themselves, and scaling down further helps nobody.
  static constexpr double hopeless = 1.0 / 65536.0;

  double scale = 0.0;       ///< 0 = no scaling
  std::int64_t growth = 0;  ///< updates since it last changed

  static DynamicScale of(const RunSpec& spec) {
    const double preset = spec.model.dtype == Dtype::float16 ? first : 0.0;
    return {spec.optimizer.loss_scale.value_or(preset), 0};
  }
  bool enabled() const { return scale > 0.0; }
  double factor() const { return enabled() ? scale : 1.0; }
  void overflowed() {
    if (!enabled()) return;
    scale *= 0.5;
    growth = 0;
  }
  void stepped() {
    if (!enabled() || ++growth < growth_interval) return;
    scale *= 2.0;
    growth = 0;
  }
};

}  // namespace accrue
