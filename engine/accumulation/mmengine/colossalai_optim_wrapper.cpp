// SPDX-License-Identifier: Apache-2.0
// The original's faults of no_sync are absent: the scope covers forward and backward, the booster receives the user's
// own module, and a plugin that cannot accumulate is refused at construction instead of giving a wrong gradient. Cost:
// two scopes per micro-step instead of one.
// Source: mmengine's ColossalAIOptimWrapper and ColossalAIStrategy.
#include "accrue/accumulation/mmengine/colossalai_optim_wrapper.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace accrue::mmengine {

void BoosterSync::set_sync_enabled(bool enabled) {
  if (enabled)
    scope_.reset();
  else if (!booster->in_no_sync())
    scope_ = booster->no_sync(model, optimizer_);
}

void BoosterSync::backward(const at::Tensor& loss, BackwardOptions options) {
  reduced_ = false;
  booster->backward(loss, optimizer_, options);
  reduced_ = sync_enabled();
}

void BoosterSync::finish() {
  if (!std::exchange(reduced_, false)) booster->reduce(optimizer_);
}

ColossalAIOptimWrapper::ColossalAIOptimWrapper(const AnyOptimizer& optimizer, std::shared_ptr<Booster> booster,
                                               std::int64_t accumulative_counts, WarningSink warn,
                                               std::vector<Replay> replay)
    : OptimWrapper(optimizer,
                   {.accumulative_counts = accumulative_counts, .warn = std::move(warn), .replay = std::move(replay)}),
      sync_(inner()) {
  set_booster(std::move(booster));
}

void ColossalAIOptimWrapper::set_booster(std::shared_ptr<Booster> booster) {
  if (booster && accumulative_counts() > 1 && !booster->plugin().supports_accumulation)
    throw std::invalid_argument("ColossalAIOptimWrapper: accumulative_counts is " +
                                std::to_string(accumulative_counts()) + ", but the plugin " + booster->plugin().name +
                                " keeps no sum of gradients; give it enable_gradient_accumulation, or set "
                                "accumulative_counts to 1");
  sync_.booster = std::move(booster);
  driver().set_model(sync_.booster ? &sync_ : nullptr);
}

bool ColossalAIOptimWrapper::reduces() const {
  return should_sync() || !sync_.booster || !sync_.booster->plugin().supports_no_sync;
}

OptimContext ColossalAIOptimWrapper::optim_context(torch::nn::Module& model) {
  if (!sync_.booster)
    throw std::logic_error(
        "ColossalAIOptimWrapper: optim_context() needs a booster; give one to the constructor or to set_booster(), or "
        "let ColossalAIStrategy build the wrapper");
  sync_.model = &model;
  return OptimWrapper::optim_context(model);
}

void ColossalAIOptimWrapper::backward(const at::Tensor& loss, BackwardOptions options) {
  const bool uncovered = sync_.booster && sync_.booster->plugin().asks_in_backward &&
                         window()->shape().knobs.replays(Replay::narrow_no_sync);
  const bool reduces = this->reduces() || uncovered;
  if (reduces) driver().require_open();
  driver().count();
  driver().backward(reduces, [&] { differentiate(loss, options); });
}

void ColossalAIOptimWrapper::differentiate(const at::Tensor& loss, BackwardOptions options) {
  if (sync_.booster)
    sync_.backward(loss, options);
  else
    inner().backward(loss, options);
}

ColossalAIStrategy::ColossalAIStrategy(ColossalAIStrategyOptions options) : options_(std::move(options)) {
  if (options_.clip_grad)
    throw std::invalid_argument(
        "ColossalAIStrategy: clip_grad does not belong to the wrapper; set the bound where the plugin is made");
  if (options_.accumulative_counts > 1 && !options_.max_iters)
    throw std::invalid_argument(
        "ColossalAIStrategy: max_iters is needed with accumulative_counts above 1, to know the run's last window; set "
        "it to the micro-iterations of the whole run");
}

std::shared_ptr<ColossalAIOptimWrapper> ColossalAIStrategy::build_optim_wrapper(
    const AnyOptimizer& optimizer, std::shared_ptr<Booster> booster) const {
  return std::make_shared<ColossalAIOptimWrapper>(optimizer, std::move(booster), options_.accumulative_counts,
                                                  options_.warn, options_.replay);
}

void ColossalAIStrategy::prepare(const torch::nn::Module& model, OptimWrapper& optim_wrapper) const {
  optim_wrapper.initialize_count_status(model, 0, options_.max_iters.value_or(unset_counts));
}

void ColossalAIStrategy::resume(const torch::nn::Module& model, OptimWrapper& optim_wrapper,
                                std::int64_t iteration) const {
  const auto& replay = options_.replay;
  const bool restarts = std::find(replay.begin(), replay.end(), Replay::restart_count) != replay.end();
  if (restarts) return prepare(model, optim_wrapper);
  optim_wrapper.initialize_count_status(model, iteration, options_.max_iters.value_or(unset_counts));
}

}  // namespace accrue::mmengine
