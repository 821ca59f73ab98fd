// SPDX-License-Identifier: Apache-2.0
// Mixed precision of llm-pytorch: an optimizer that scales losses, and in its step unscales, clips and updates the
// scale. Inside the accumulation wrapper all of this happens once per window. Thread: the training thread.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "accrue/accumulation/any_optimizer.h"
#include "accrue/accumulation/autocast_scope.h"
#include "accrue/accumulation/clip_grad_norm.h"
#include "accrue/accumulation/grad_scaler.h"
#include "accrue/comm/grad_sync.h"

namespace torch::nn {
class Module;
}

namespace accrue::llm {

/// backward() scales the loss. step() unscales and clips (if max_norm is given), steps unless a gradient is not finite,
/// and updates the scale. Source: llm.engine.amp.AMPOptimizer.
class AMPOptimizer final : public OptimizerWrapper, public ClipsGradNorm {
 public:
  /// Clips the parameters of `model`. References must outlive this.
  AMPOptimizer(torch::nn::Module& model, const AnyOptimizer& optimizer, GradScaler scaler,
               std::optional<double> max_norm = std::nullopt);

  void backward(const at::Tensor& loss, BackwardOptions options = {}) override;
  StepOutcome step(const Closure& closure = {}) override;
  /// Unscales first, once per update. Returns the norm before.
  double clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm) override;

  /// Returns the inner state, and the scaler's under "grad_scaler.".
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

  const GradScaler& scaler() const { return scaler_; }

 private:
  torch::nn::Module& model_;
  GradScaler scaler_;
  std::optional<double> max_norm_;
  bool unscaled_ = false;  ///< since the last step
};

/// Scope of a forward in lower precision.
using accrue::AutocastScope;

struct EngineOptions {
  std::optional<c10::ScalarType> dtype;     ///< of the forward, under AutocastScope; empty: no mixed precision
  std::optional<double> max_norm;           ///< as in the original, without effect if dtype is empty
  std::optional<GradScalerOptions> scaler;  ///< empty: scales float16 on a GPU; on a CPU the original does not scale
  Communicator* axis = nullptr;             ///< the ranks that must agree on an overflow
};

/// The higher-level entry point: adds mixed precision if a dtype is given, and accumulation around it if N > 1 or if
/// `sync` has gradients to reduce. Otherwise returns its arguments unchanged. Source: llm.engine.initialize.
std::pair<std::shared_ptr<BaseOptimizer>, std::shared_ptr<BaseScheduler>> initialize(
    torch::nn::Module& model, GradSync* sync, const AnyOptimizer& optimizer, const AnyScheduler& scheduler,
    std::int64_t accumulation_steps, const EngineOptions& options);

}  // namespace accrue::llm
