// SPDX-License-Identifier: Apache-2.0
// GradScaler: loss scaling for float16. Scaled gradients accumulate over a window as they are; they are unscaled and
// looked at for infinities once, at the boundary, and what one rank found all ranks act on, so a window is discarded
// everywhere or nowhere. A step answers an outcome; nothing is skipped in silence.
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
  bool enabled = true;                  ///< false: scale is 1, nothing is looked for
};

class GradScaler {
 public:
  /// `axis`, if given, reduces found_inf over its ranks (max) and must outlive this; step() is then collective on it.
  /// Errors: throws std::invalid_argument where the options could not follow the gradients up and down.
  explicit GradScaler(GradScalerOptions options = {}, Communicator* axis = nullptr);

  bool enabled() const { return enabled_; }
  double get_scale() const { return scale_.scale; }

  /// loss * scale.
  at::Tensor scale(const at::Tensor& loss) const;
  /// Divides the accumulated gradients by the scale and notes whether any is not finite. At most once per optimizer
  /// between two update(): a second call throws std::logic_error, as it would divide twice.
  void unscale_(BaseOptimizer& optimizer);
  /// Unscales unless done, agrees with the other ranks, and steps `optimizer` where all gradients are finite; else the
  /// optimizer is not touched and the answer is skipped_overflow; skipped_empty where no rank has a gradient. At most
  /// once per optimizer between two update(): a second call throws std::logic_error.
  /// A closure would bring gradients without the scale: with one, throws std::invalid_argument as torch does.
  StepOutcome step(BaseOptimizer& optimizer, const Closure& closure = {});
  /// Once an update, after the last step(): backs off after an overflow, grows after enough updates without one. Throws
  /// std::logic_error where no gradients were looked at since the last update().
  /// `new_scale` sets it instead, as a scale that is not meant to follow does.
  void update(std::optional<double> new_scale = std::nullopt);

  /// Forgets what was looked at since the last update(), which then has nothing to go by: for gradients that were
  /// thrown away.
  void forget_gradients() { unscaled_.clear(); }
  /// The same for one optimizer, which may then be unscaled again: for gradients that have another scale now.
  void forget_gradients(BaseOptimizer& optimizer) {
    std::erase_if(unscaled_, [&](const Unscaled& each) { return each.optimizer == &optimizer.torch(); });
  }

  /// scale, growth_factor, backoff_factor, growth_interval, growth_tracker; nothing where disabled.
  StateDict state_dict() const;
  /// Errors: throws std::invalid_argument naming the entry that is missing; nothing is changed then.
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
