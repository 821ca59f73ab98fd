// SPDX-License-Identifier: Apache-2.0
// The scaler checks gradients that were summed over a whole window and reduced over all ranks, so it is called once per
// update. Clipping needs true gradients: they are unscaled first, and the scaler remembers it. Source: the order of
// mmengine.optim.AmpOptimWrapper.step.
#include "accrue/accumulation/mmengine/amp_optim_wrapper.h"

#include <utility>

#include "accrue/accumulation/autocast_scope.h"

namespace accrue::mmengine {
namespace {

constexpr const char* scaler_key = "loss_scaler";

GradScalerOptions scaler_options(const AmpOptions& amp) {
  GradScalerOptions options = amp.loss_scale;
  if (amp.static_scale) options.init_scale = *amp.static_scale;
  return options;
}

}  // namespace

AmpOptimWrapper::AmpOptimWrapper(const AnyOptimizer& optimizer, AmpOptions amp, OptimWrapperOptions options)
    : OptimWrapper(optimizer, std::move(options)), amp_(amp), scaler_(scaler_options(amp), amp.axis) {}

StepOutcome AmpOptimWrapper::update(const Closure& closure) {
  if (clips()) {
    scaler_.unscale_(inner());
    clip();
  }
  const StepOutcome outcome = scaler_.step(inner(), closure);
  // A static scale stays after an overflow too; that window is lost all the same.
  scaler_.update(amp_.static_scale);
  return outcome;
}

OptimContext AmpOptimWrapper::optim_context(torch::nn::Module& model) {
  OptimContext context = OptimWrapper::optim_context(model);
  if (amp_.dtype) context.hold(std::make_shared<AutocastScope>(*amp_.dtype, amp_.device));
  return context;
}

StateDict AmpOptimWrapper::state_dict() const {
  StateDict state = OptimWrapper::state_dict();
  put_under(state, scaler_key, scaler_.state_dict());
  return state;
}

void AmpOptimWrapper::load_state_dict(const StateDict& state) {
  GradScaler scaler = scaler_;
  const StateDict own = take_under(state, scaler_key);
  if (!own.empty()) scaler.load_state_dict(own);
  OptimWrapper::load_state_dict(state);
  scaler_ = std::move(scaler);
}

}  // namespace accrue::mmengine
