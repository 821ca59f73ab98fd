// SPDX-License-Identifier: Apache-2.0
// BaseScheduler: the interface of every schedule wrapper and of the object inside it. wrap() makes one of a LibTorch
// scheduler; LambdaLR adds what LibTorch lacks. A scheduler moves the learning rate of every group of one optimizer.
// Its position begins at 0, in force from construction, and each step() advances it by one. Thread: the training
// thread.
#pragma once

#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accrue/accumulation/base_optimizer.h"
#include "accrue/run/window/lr_curve.h"

namespace accrue {

class BaseScheduler {
 public:
  virtual ~BaseScheduler() = default;

  /// Advances by one position, or with `epoch` to that position, like torch's deprecated step(epoch).
  virtual void step(std::optional<std::int64_t> epoch = std::nullopt) = 0;
  /// Rates that the last step put in force, one per group.
  virtual std::vector<double> get_last_lr() const = 0;
  /// Number of positions of the schedule; none if it has no end. Wrappers that tick several times per update stop
  /// there.
  virtual std::optional<std::int64_t> total_steps() const { return std::nullopt; }

  virtual StateDict state_dict() const = 0;
  /// Sets the position and the optimizer's rates. Errors: throws std::invalid_argument that names a missing entry.
  virtual void load_state_dict(const StateDict& state) = 0;

  /// Describes the rates in force, one line per parameter group, after a wrapper's name.
  virtual std::string text() const;
};

std::ostream& operator<<(std::ostream& out, const BaseScheduler& scheduler);

/// Makes a BaseScheduler of a LibTorch scheduler. LibTorch exposes only its number of steps and the rates in force, so
/// that is its whole state; a scheduler with further state, such as a best metric or patience, restarts it. Such
/// schedulers count from their first step(): LibTorch's StepLR changes the rate one step later than Python's, which
/// counts from construction; accrue::StepLR matches Python's. `scheduler`, and the `optimizer` that it was made for,
/// must outlive the result. Errors: its step(epoch) throws std::invalid_argument, as LibTorch's schedulers cannot jump
/// to a position.
std::shared_ptr<BaseScheduler> wrap(torch::optim::LRScheduler& scheduler, torch::optim::Optimizer& optimizer,
                                    std::optional<std::int64_t> total_steps = std::nullopt);

/// Schedule that sets lr of each group to its lr at construction times factor(position).
/// Source: the role of torch.optim.lr_scheduler.LambdaLR, which LibTorch lacks.
class LambdaLR : public BaseScheduler {
 public:
  using Factor = std::function<double(std::int64_t position)>;
  LambdaLR(torch::optim::Optimizer& optimizer, Factor factor, std::optional<std::int64_t> total_steps = std::nullopt);
  /// Uses the given rates, one per group, instead of those at construction.
  LambdaLR(torch::optim::Optimizer& optimizer, Factor factor, std::optional<std::int64_t> total_steps,
           std::vector<double> base);

  void step(std::optional<std::int64_t> epoch = std::nullopt) override;
  std::vector<double> get_last_lr() const override;
  std::optional<std::int64_t> total_steps() const override { return total_steps_; }
  std::int64_t position() const { return position_; }
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 private:
  void apply();

  torch::optim::Optimizer& optimizer_;
  Factor factor_;
  std::optional<std::int64_t> total_steps_;
  std::vector<double> base_;
  std::int64_t position_ = 0;
};

/// Schedule that sets lr of each group to its lr at construction times gamma^(position / step_size), the exponent
/// rounded down: Python's torch.optim.lr_scheduler.StepLR. Errors: throws std::invalid_argument for a step_size below
/// 1.
class StepLR final : public LambdaLR {
 public:
  StepLR(torch::optim::Optimizer& optimizer, std::int64_t step_size, double gamma = 0.1);
};

/// Warns like torch, once a schedule has moved before its optimizer's first step, which skips its first value.
void warn_of_schedule_before_step();

/// Makes a scheduler of one of Accrue's curves (constant, linear, cosine, WSD, ... with warm-up). The rate of the first
/// group is lr_at(curve, position); the others keep their present proportion to it. Its total is the curve's, if the
/// curve has an end.
std::shared_ptr<BaseScheduler> make_curve_lr(torch::optim::Optimizer& optimizer, const LrCurve& curve);

/// Rates of all groups: read and set. Errors: throws std::invalid_argument for a wrong number of rates.
std::vector<double> learning_rates(const torch::optim::Optimizer& optimizer);
void set_learning_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& rates);

}  // namespace accrue
