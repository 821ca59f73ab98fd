// SPDX-License-Identifier: Apache-2.0
// Mixed precision inside accumulation: the accumulation wrapper calls this step once per window, so unscaling, clipping
// and the scale's update happen once per window, on the sum. Source: llm.engine.amp, llm.engine.initialize.
#include "accrue/accumulation/llm_amp.h"

#include <torch/nn/module.h>

#include <algorithm>

#include "accrue/accumulation/llm.h"

namespace accrue::llm {
namespace {

constexpr const char* scaler_entry = "grad_scaler";

GradScalerOptions scaler_options(torch::nn::Module& model, const EngineOptions& options) {
  if (options.scaler) return *options.scaler;
  const auto parameters = model.parameters();
  const bool on_cpu =
      std::all_of(parameters.begin(), parameters.end(), [](const at::Tensor& each) { return each.is_cpu(); });
  GradScalerOptions chosen;
  chosen.enabled = *options.dtype == at::kHalf && !on_cpu;
  return chosen;
}

}  // namespace

AMPOptimizer::AMPOptimizer(torch::nn::Module& model, const AnyOptimizer& optimizer, GradScaler scaler,
                           std::optional<double> max_norm)
    : OptimizerWrapper(optimizer), model_(model), scaler_(std::move(scaler)), max_norm_(max_norm) {}

void AMPOptimizer::backward(const at::Tensor& loss, BackwardOptions options) {
  inner().backward(scaler_.scale(loss), options);
}

double AMPOptimizer::clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm) {
  if (!unscaled_) scaler_.unscale_(inner());
  unscaled_ = true;
  return accrue::clip_grad_norm(parameters, max_norm);
}

StepOutcome AMPOptimizer::step(const Closure& closure) {
  // Order: unscale, clip, check, step, update the scale S. The norm of gradients that are still scaled would be S times
  // too large.
  if (max_norm_) clip_grad_norm(model_.parameters(), *max_norm_);
  unscaled_ = false;
  const StepOutcome outcome = scaler_.step(inner(), closure);
  scaler_.update();
  return outcome;
}

StateDict AMPOptimizer::state_dict() const {
  StateDict state = inner().state_dict();
  put_under(state, scaler_entry, scaler_.state_dict());
  return state;
}

void AMPOptimizer::load_state_dict(const StateDict& state) {
  GradScaler loaded = scaler_;
  loaded.load_state_dict(take_under(state, scaler_entry));
  inner().load_state_dict(state);
  scaler_ = std::move(loaded);
  unscaled_ = false;
}

std::pair<std::shared_ptr<BaseOptimizer>, std::shared_ptr<BaseScheduler>> initialize(
    torch::nn::Module& model, GradSync* sync, const AnyOptimizer& optimizer, const AnyScheduler& scheduler,
    std::int64_t accumulation_steps, const EngineOptions& options) {
  std::shared_ptr<BaseOptimizer> inner = optimizer.shared();
  if (options.dtype)
    inner = std::make_shared<AMPOptimizer>(model, inner, GradScaler(scaler_options(model, options), options.axis),
                                           options.max_norm);
  if (accumulation_steps == 1 && sync == nullptr) return {inner, scheduler.shared()};
  auto [wrapped, schedule] = initialize(sync, inner, scheduler, accumulation_steps);
  return {wrapped, schedule};
}

}  // namespace accrue::llm
