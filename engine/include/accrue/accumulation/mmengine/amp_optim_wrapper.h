// SPDX-License-Identifier: Apache-2.0
// AmpOptimWrapper: OptimWrapper with loss scaling. Losses are scaled before each backward. step() unscales, clips and
// checks for an overflow once per window. An overflow anywhere in a window discards that window on every rank and
// nothing else. Thread: the training thread. Source: mmengine.optim.AmpOptimWrapper.
#pragma once

#include <c10/core/DeviceType.h>

#include "accrue/accumulation/grad_scaler.h"
#include "accrue/accumulation/mmengine/optim_wrapper.h"

namespace accrue::mmengine {

struct AmpOptions {
  GradScalerOptions loss_scale;         ///< MMEngine's "dynamic", or its dictionary
  std::optional<double> static_scale;   ///< MMEngine's number: a constant scale
  std::optional<at::ScalarType> dtype;  ///< type of the forward's operators (autocast); empty: unchanged
  at::DeviceType device = at::kCPU;     ///< device whose operators autocast changes
  Communicator* axis = nullptr;         ///< ranks that share the decision about an overflow; must outlive the wrapper
};

class AmpOptimWrapper : public OptimWrapper {
 public:
  AmpOptimWrapper(const AnyOptimizer& optimizer, AmpOptions amp, OptimWrapperOptions options = {});

  /// Opens the scope of one forward: autocast, and that of OptimWrapper.
  OptimContext optim_context(torch::nn::Module& model) override;

  const GradScaler& loss_scaler() const { return scaler_; }
  /// Returns the optimizer's state, and the scaler's under "loss_scaler".
  StateDict state_dict() const override;
  /// A state without "loss_scaler" (from a run without scaling) does not change the scale. Errors: throws
  /// std::invalid_argument; nothing is changed then.
  void load_state_dict(const StateDict& state) override;

 protected:
  /// Unscales, clips, steps unless a gradient is not finite, and updates the scale. Collective on `axis`.
  StepOutcome update(const Closure& closure) override;
  void differentiate(const at::Tensor& loss, BackwardOptions options) override {
    inner().backward(scaler_.scale(loss), options);
  }

 private:
  AmpOptions amp_;
  GradScaler scaler_;
};

}  // namespace accrue::mmengine
