// SPDX-License-Identifier: Apache-2.0
// GradScaler: loss scaling for float16. Scaled gradients accumulate over a window. They are unscaled and checked for
// infinities once, at the boundary. All ranks act on a finding of one, so a window is discarded everywhere or
// nowhere. A step returns its outcome; nothing is skipped silently.
// Source: the role of torch.amp.GradScaler (dynamic loss scaling after Micikevicius et al., Mixed Precision Training).
// Thread: the training thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "accrue/accumulation/base_optimizer.h"
#include "accrue/comm/communicator.h"
#include "accrue/update/dynamic_scale.h"

namespace accrue {

struct GradScalerOptions {
  double init_scale = DynamicScale::first;
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;  ///< updates without an overflow before the scale grows
  bool enabled = true;                  ///< false: scale is 1, nothing is checked
};

class GradScaler {
 public:
  /// `axis`, if given, reduces found_inf over its ranks (max) and must outlive this; step() is then collective on it.
  /// Errors: throws std::invalid_argument for options with which the scale could not follow the gradients up and down.
  explicit GradScaler(GradScalerOptions options = {}, Communicator* axis = nullptr);

  bool enabled() const { return enabled_; }
  double get_scale() const { return scale_.scale; }

  /// loss * scale.
  at::Tensor scale(const at::Tensor& loss) const;
  /// Divides the accumulated gradients by the scale and records whether any is not finite. At most once per optimizer
  /// between two update() calls: a second call throws std::logic_error, as it would divide twice.
  void unscale_(BaseOptimizer& optimizer);
  /// Unscales if necessary, agrees with the other ranks, and steps `optimizer` if all gradients are finite. Otherwise
  /// the optimizer is not called and the result is skipped_overflow, or skipped_empty if no rank has a gradient. At
  /// most once per optimizer between two update() calls: a second call throws std::logic_error.
  /// A closure would bring gradients without the scale: with one, throws std::invalid_argument as torch does.
  StepOutcome step(BaseOptimizer& optimizer, const Closure& closure = {});
  /// Call once per update, after the last step(): backs off after an overflow, grows after enough updates without one.
  /// Throws std::logic_error if no gradients were checked since the last update().
  /// `new_scale` sets the scale instead, for a scale that is not dynamic.
  void update(std::optional<double> new_scale = std::nullopt);

  /// Forgets the checks since the last update(), because the gradients were discarded.
  void forget_gradients() { unscaled_.clear(); }
  /// Does the same for one optimizer, which may then be unscaled again, because its gradients now have another scale.
  void forget_gradients(BaseOptimizer& optimizer) {
    std::erase_if(unscaled_, [&](const Unscaled& each) { return each.optimizer == &optimizer.torch(); });
  }

  /// scale, growth_factor, backoff_factor, growth_interval, growth_tracker; empty if disabled.
  StateDict state_dict() const;
  /// Errors: throws std::invalid_argument that names a missing entry; nothing is changed then.
  void load_state_dict(const StateDict& state);

 private:
  struct Unscaled {
    const torch::optim::Optimizer* optimizer;
    bool found_inf;
    bool found_any;  ///< a gradient at all
    bool agreed;     ///< both hold for all ranks of the axis
  };
  Unscaled* find(BaseOptimizer& optimizer);
  void agree(Unscaled& entry);

  bool enabled_;
  Communicator* axis_;
  DynamicScale scale_;
  std::vector<Unscaled> unscaled_;
};

}  // namespace accrue
