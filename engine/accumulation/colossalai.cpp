// SPDX-License-Identifier: Apache-2.0
// The names of Colossal-AI's accumulation over one window. In the original the optimizer, the scheduler, every handler
// and the loader count separately and drift apart if one of them is called more often; here they share one window.
// Source: colossalai.utils.gradient_accumulation, colossalai.engine.Engine.
#include "accrue/accumulation/colossalai.h"

#include <ostream>
#include <stdexcept>
#include <string>

#include "accrue/accumulation/clip_grad_norm.h"

namespace accrue::colossalai {

GradAccumOptimizer::GradAccumOptimizer(const AnyOptimizer& optim, const StepsOrWindow& accumulate_size, GradSync* model,
                                       const Replays& replay)
    : AccumulatingOptimizer(optim, model, accumulate_size.window(Dialect::colossalai, "GradAccumOptimizer", replay)) {}

void GradAccumOptimizer::backward_by_grad(const at::Tensor& tensor, const at::Tensor& grad) {
  micro_step([&](const MicroPlan&) { tensor.backward(grad); });
}

std::optional<double> GradAccumOptimizer::clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm) {
  // The original clips after every micro-step, whatever max_norm is. Replayed, a max_norm of 0 zeroes the sum, because
  // the factor is 0 / (norm + 1e-6).
  const bool gated = !window().boundary_due() || max_norm <= 0.0;
  if (gated && !driver().clips_partial_sums()) return std::nullopt;
  if (auto* clips = dynamic_cast<ClipsGradNorm*>(&inner()); clips != nullptr && !gated)
    return clips->clip_grad_norm(parameters, max_norm);
  return accrue::clip_grad_norm(parameters, max_norm);
}

void GradAccumOptimizer::declare_epoch(std::int64_t batches) {
  driver().declare({"GradAccumDataloader: the batches of an epoch, in whole windows,", batches});
}

GradAccumLrSchedulerByStep::GradAccumLrSchedulerByStep(const AnyScheduler& lr_scheduler,
                                                       const StepsOrWindow& accumulate_size)
    : AccumulatingScheduler(lr_scheduler, accumulate_size.window(Dialect::colossalai, "GradAccumLrSchedulerByStep")) {}

std::int64_t GradAccumLrSchedulerByStep::compute_effective_steps_per_epoch(std::int64_t batches_per_epoch,
                                                                           std::int64_t accumulate_size) {
  return total_windows(epoch_shape(batches_per_epoch, accumulate_size)).updates;
}

GradAccumGradientHandler::GradAccumGradientHandler(std::shared_ptr<BaseGradientHandler> grad_handler,
                                                   const StepsOrWindow& accumulate_size)
    : inner_(std::move(grad_handler)),
      window_(accumulate_size.window(Dialect::colossalai, "GradAccumGradientHandler")),
      counts_(accumulate_size.counts_for_itself()) {
  if (!inner_) throw std::invalid_argument("GradAccumGradientHandler: the handler is empty; give one that reduces");
}

void GradAccumGradientHandler::handle_gradient() {
  if (counts_) window_->count();
  const bool due = counts_ ? window_->take_boundary() : window_->boundary_due();
  if (!counts_ && !due && window_->position().at_boundary() && handled_at_ != window_->micro_steps_done())
    throw std::logic_error(
        "GradAccumGradientHandler: the optimizer has stepped with gradients that this handler did not reduce; call "
        "handle_gradient() after the backward and before clip_grad_norm() and step(), or let Engine::step() do it");
  // A handler that sums would sum the sums again: R times too large on R ranks.
  if (!due || handled_at_ == window_->micro_steps_done()) return;
  handled_at_ = window_->micro_steps_done();
  inner_->handle_gradient();
}

std::string GradAccumGradientHandler::text() const {
  return "GradAccumGradientHandler: once per window of " + std::to_string(window_->shape().steps) + "\n" +
         inner_->text();
}

std::ostream& operator<<(std::ostream& out, const GradAccumGradientHandler& handler) {
  return out << handler.text();
}

GradAccumHandlers wrap_handlers(const GradientHandlers& handlers, const SharedWindow& window) {
  GradAccumHandlers wrapped;
  for (const auto& each : handlers) wrapped.push_back(std::make_shared<GradAccumGradientHandler>(each, window));
  return wrapped;
}

Engine::Engine(std::shared_ptr<GradAccumOptimizer> optimizer, GradAccumHandlers gradient_handlers,
               double clip_grad_norm)
    : optimizer_(std::move(optimizer)),
      gradient_handlers_(std::move(gradient_handlers)),
      clip_grad_norm_(clip_grad_norm) {
  if (!optimizer_) throw std::invalid_argument("Engine: there is no optimizer");
}

StepOutcome Engine::step() {
  // The norm is that of the reduced gradient, equal on all ranks; clipped before, each rank would scale by its own.
  for (const auto& handler : gradient_handlers_) handler->handle_gradient();
  optimizer_->clip_grad_norm(optimizer_->parameters(), clip_grad_norm_);
  return optimizer_->step();
}

}  // namespace accrue::colossalai
