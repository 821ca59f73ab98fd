// SPDX-License-Identifier: Apache-2.0
// ColossalAIOptimWrapper: OptimWrapper whose backward and no_sync go through a booster. It has no clip_grad, because
// clipping belongs to the plugin. ColossalAIStrategy builds it with its system's checks, and starts or resumes its
// count. Thread: the training thread. Source: mmengine's ColossalAIOptimWrapper and ColossalAIStrategy.
#pragma once

#include "accrue/accumulation/mmengine/booster.h"
#include "accrue/accumulation/mmengine/optim_wrapper.h"

namespace accrue::mmengine {

/// Adapter of a booster for a driver. Its own backward reduces, so finish() has nothing left to do.
class BoosterSync final : public GradSync {
 public:
  explicit BoosterSync(BaseOptimizer& optimizer) : optimizer_(optimizer) {}
  bool sync_enabled() const override { return !booster->in_no_sync(); }
  void set_sync_enabled(bool enabled) override;
  void finish() override;
  void agree(const std::vector<NamedNumber>& numbers) override { booster->agree(numbers); }
  void backward(const at::Tensor& loss, BackwardOptions options);

  std::shared_ptr<Booster> booster;
  torch::nn::Module* model = nullptr;  ///< the user's own module

 private:
  BaseOptimizer& optimizer_;
  std::shared_ptr<void> scope_;
  bool reduced_ = false;  ///< set by the last backward
};

class ColossalAIOptimWrapper : public OptimWrapper {
 public:
  /// `replay`: defects of the original (0.10.7, 0.11) for comparison only; none by default. narrow_no_sync: the
  /// backward is not under no_sync, so a plugin that checks it there (LowLevelZero) reduces in every micro-step.
  /// restart_count is ColossalAIStrategy's. Errors: throws std::invalid_argument for accumulative_counts below 1, or
  /// above 1 with a plugin whose gradients cannot be summed.
  explicit ColossalAIOptimWrapper(const AnyOptimizer& optimizer, std::shared_ptr<Booster> booster = nullptr,
                                  std::int64_t accumulative_counts = 1, WarningSink warn = {},
                                  std::vector<Replay> replay = {});

  const std::shared_ptr<Booster>& booster() const { return sync_.booster; }
  /// Sets the booster once it exists, as the strategy does. Errors: as the constructor's.
  void set_booster(std::shared_ptr<Booster> booster);

  /// Opens the scope of one forward: the booster's no_sync if the plugin has one and should_sync() is false. `model` is
  /// the user's own module; it must live until the backward. Errors: throws std::logic_error without a booster.
  OptimContext optim_context(torch::nn::Module& model) override;
  /// Counts first, then differentiates, so a backward that throws has been counted. Off a boundary it also runs under
  /// the booster's no_sync, for plugins that check it in the backward. Errors: throws std::logic_error if it must
  /// reduce while a no_sync scope is open.
  void backward(const at::Tensor& loss, BackwardOptions options = {}) override;

 protected:
  bool reduces() const override;
  void differentiate(const at::Tensor& loss, BackwardOptions options) override;

 private:
  BoosterSync sync_;
};

struct ColossalAIStrategyOptions {
  std::int64_t accumulative_counts = 1;
  std::optional<ClipGrad> clip_grad;      ///< refused: clipping belongs to the plugin
  std::optional<std::int64_t> max_iters;  ///< micro-iterations of the whole run; required for counts above 1
  WarningSink warn;
  /// Defects of the original, for comparison with its runs only. restart_count: a resumed run counts from 0 again while
  /// max_iters stays, so the window phase restarts, the run's last short window is never flushed and its losses are
  /// divided by N. narrow_no_sync: passed to the wrapper.
  std::vector<Replay> replay;
};

class ColossalAIStrategy {
 public:
  /// Errors: throws std::invalid_argument if clip_grad is given, or if max_iters is missing with accumulative_counts
  /// above 1.
  explicit ColossalAIStrategy(ColossalAIStrategyOptions options);

  /// Wraps the optimizer, or the one that build_optimizer() makes of a configuration.
  std::shared_ptr<ColossalAIOptimWrapper> build_optim_wrapper(const AnyOptimizer& optimizer,
                                                              std::shared_ptr<Booster> booster) const;
  /// Prepares a run that begins.
  void prepare(const torch::nn::Module& model, OptimWrapper& optim_wrapper) const;
  /// Prepares a run that continues after `iteration` micro-iterations. Gradients of a window that was open then are
  /// lost, with a warning.
  void resume(const torch::nn::Module& model, OptimWrapper& optim_wrapper, std::int64_t iteration) const;

 private:
  ColossalAIStrategyOptions options_;
};

}  // namespace accrue::mmengine
