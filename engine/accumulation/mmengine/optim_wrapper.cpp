// SPDX-License-Identifier: Apache-2.0
// MMEngine's wrapper keeps a count, a maximum and a remainder. Here they are the counter, max_iters and the divisor of
// an AccumulationWindow with that system's preset, so the planner's display and this code cannot differ. The length of
// an epoch is irrelevant: windows run across epochs. Two improvements: the backward of a micro-step that does not
// reduce is covered too, and a step off a boundary reduces first. Cost: a look ahead over one window at its beginning.
// Source: the behaviour of mmengine.optim.OptimWrapper.
#include "accrue/accumulation/mmengine/optim_wrapper.h"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <stdexcept>
#include <utility>

#include "accrue/accumulation/accumulating.h"
#include "accrue/accumulation/base_scheduler.h"
#include "accumulation/mmengine/batch_norm.h"

namespace accrue::mmengine {
namespace {

void warn_on_stderr(const std::string& text) {
  std::fprintf(stderr, "warning: %s\n", text.c_str());
}

OptimWrapperOptions checked(OptimWrapperOptions options) {
  if (options.clip_grad) check(*options.clip_grad);
  if (!options.warn) options.warn = warn_on_stderr;
  return options;
}

WindowShape shape_of(const OptimWrapperOptions& options) {
  WindowShape shape =
      system_shape(Dialect::mmengine, options.accumulative_counts, "OptimWrapper: accumulative_counts", options.replay);
  if (options.clip_grad) shape.knobs.clip_stage = ClipStage::in_update;
  return shape;
}

double momentum_of(const torch::optim::OptimizerOptions& options) {
  if (const auto* adam = dynamic_cast<const torch::optim::AdamOptions*>(&options)) return std::get<0>(adam->betas());
  if (const auto* adamw = dynamic_cast<const torch::optim::AdamWOptions*>(&options)) return std::get<0>(adamw->betas());
  if (const auto* sgd = dynamic_cast<const torch::optim::SGDOptions*>(&options)) return sgd->momentum();
  if (const auto* rms = dynamic_cast<const torch::optim::RMSpropOptions*>(&options)) return rms->momentum();
  return 0.0;
}

}  // namespace

OptimWrapper::OptimWrapper(const AnyOptimizer& optimizer, OptimWrapperOptions options)
    : OptimizerWrapper(optimizer),
      options_(checked(std::move(options))),
      driver_(std::make_shared<AccumulationWindow>(shape_of(options_)), ClearGradients::engine,
              "OptimWrapper: accumulative_counts", options_.sync) {
  window()->resume_at(0);
  if (param_groups().size() > 1) first_rate_ = learning_rates(torch()).front();
}

void OptimWrapper::initialize_count_status(const torch::nn::Module& model, std::int64_t init_counts,
                                           std::int64_t max_counts) {
  if (init_counts < 0 || max_counts < unset_counts)
    throw std::invalid_argument("OptimWrapper: a run stands at micro-iteration " + std::to_string(init_counts) +
                                " of " + std::to_string(max_counts) +
                                "; both are 0 or more, and the second is unset_counts where the run is open");
  const std::int64_t steps = accumulative_counts();
  if (init_counts % steps != 0)
    options_.warn("resumed at micro-iteration " + std::to_string(init_counts) + ", inside a window of " +
                  std::to_string(steps) + ": the gradients of the " + std::to_string(init_counts % steps) +
                  " before it are lost, and the window's update is smaller by them");
  if (steps > 1 && has_batch_norm(model))
    options_.warn("the model has BatchNorm, which sees each micro-batch by itself: accumulating " +
                  std::to_string(steps) + " of them is not the same as one batch of their size");
  WindowShape shape = window()->shape();
  shape.max_iters.reset();
  if (max_counts != unset_counts) shape.max_iters = max_counts;
  *window() = AccumulationWindow(std::move(shape));
  window()->resume_at(init_counts);
}

at::Tensor OptimWrapper::scale_loss(const at::Tensor& loss) const {
  const double divisor = window()->peek()->division.value;
  if (divisor > 0.0) return loss.div(divisor);
  throw std::logic_error("OptimWrapper: micro-iteration " + std::to_string(inner_count() + 1) +
                         " lies beyond max_counts = " + std::to_string(max_counts()) +
                         ", which whole windows fill; end the loop there, or call initialize_count_status() with the "
                         "count so far and a larger maximum");
}

bool OptimWrapper::should_sync() const {
  return window()->peek()->sync;
}

bool OptimWrapper::should_update() const {
  return window()->boundary_due();
}

std::int64_t OptimWrapper::remainder_counts() const {
  const std::int64_t most = max_counts();
  // The divisor of the run's last max_counts mod N losses (Normalizer::run_remainder).
  return most == unset_counts ? unset_counts : most % accumulative_counts();
}

StepOutcome OptimWrapper::update_params(const at::Tensor& loss, const UpdateSettings& settings) {
  backward(scale_loss(loss));
  if (!should_update()) return StepOutcome::accumulated;
  const StepOutcome outcome = step(settings.closure);
  zero_grad(settings.set_to_none);
  return outcome;
}

void OptimWrapper::backward(const at::Tensor& loss, BackwardOptions options) {
  driver_.backward(should_sync(), [&] { differentiate(loss, options); });
  driver_.count();
}

void OptimWrapper::clip() {
  if (options_.clip_grad) grad_norm_ = clip_gradients(*options_.clip_grad, parameters());
}

StepOutcome OptimWrapper::update(const Closure& closure) {
  clip();
  return inner().step(closure);
}

StepOutcome OptimWrapper::step(const Closure& closure) {
  driver_.settle();
  return driver_.step([&] { return update(closure); });
}

void OptimWrapper::zero_grad(bool set_to_none) {
  driver_.clear([&] { inner().zero_grad(set_to_none); });
}

OptimContext OptimWrapper::optim_context(torch::nn::Module&) {
  OptimContext context;
  if (reduces())
    driver_.before_forward();
  else if (!driver_.models().empty())
    context.hold(std::make_shared<Cover>(driver_.cover(false)));
  return context;
}

std::unique_ptr<torch::optim::OptimizerOptions> OptimWrapper::base_param_settings() const {
  if (!first_rate_) return nullptr;
  auto base = torch().defaults().clone();
  // lr_base = default * lr_0 now / lr_0 then. A first group without a rate tells of no factor.
  if (*first_rate_ != 0.0) base->set_lr(base->get_lr() * (learning_rates(torch()).front() / *first_rate_));
  return base;
}

std::map<std::string, std::vector<double>> OptimWrapper::get_lr() const {
  std::map<std::string, std::vector<double>> rates{{"lr", learning_rates(torch())}};
  if (const auto base = base_param_settings()) rates["base_lr"] = {base->get_lr()};
  return rates;
}

std::map<std::string, std::vector<double>> OptimWrapper::get_momentum() const {
  std::map<std::string, std::vector<double>> all;
  for (const auto& group : torch().param_groups()) all["momentum"].push_back(momentum_of(group.options()));
  if (const auto base = base_param_settings()) all["base_momentum"] = {momentum_of(*base)};
  return all;
}

}  // namespace accrue::mmengine
