// SPDX-License-Identifier: Apache-2.0
// BaseScheduler: what every schedule wrapper is and wraps. LibTorch's schedulers become one through wrap(); LambdaLR
// brings what LibTorch lacks. A scheduler moves the learning rate of every group of one optimizer; its
// position begins at 0, in force from construction, and each step() moves it by one. Thread: the training thread.
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
#include "accrue/run/lr_curve.h"

namespace accrue {

class BaseScheduler {
 public:
  virtual ~BaseScheduler() = default;

  /// One position further; with `epoch`, to that position, as torch's deprecated step(epoch) does.
  virtual void step(std::optional<std::int64_t> epoch = std::nullopt) = 0;
  /// The rates that the last step put in force, one per group.
  virtual std::vector<double> get_last_lr() const = 0;
  /// Positions after which the schedule has ended; none where it has no end. Wrappers that tick several times an update
  /// stop there.
  virtual std::optional<std::int64_t> total_steps() const { return std::nullopt; }

  virtual StateDict state_dict() const = 0;
  /// Sets the position and the optimizer's rates. Errors: throws std::invalid_argument naming what is missing.
  virtual void load_state_dict(const StateDict& state) = 0;

  /// The rates in force, one line per parameter group; a wrapper's name goes before them.
  virtual std::string text() const;
};

std::ostream& operator<<(std::ostream& out, const BaseScheduler& scheduler);

/// A scheduler of LibTorch's family. LibTorch shows of it only how often it stepped and the rates in force, so that is
/// its whole state: one that remembers more, as a best metric or patience, starts over. Such schedulers count
/// from their first step(): LibTorch's StepLR changes the rate one step later than Python's, which counts from its
/// construction; accrue::StepLR is Python's. `scheduler` and `optimizer`, the one it was made for, must outlive the
/// answer. Errors: its step(epoch) throws std::invalid_argument, as LibTorch's cannot go to a position.
std::shared_ptr<BaseScheduler> wrap(torch::optim::LRScheduler& scheduler, torch::optim::Optimizer& optimizer,
                                    std::optional<std::int64_t> total_steps = std::nullopt);

/// lr of each group = its lr at construction times factor(position).
/// Source: the role of torch.optim.lr_scheduler.LambdaLR, which LibTorch has no counterpart of.
class LambdaLR : public BaseScheduler {
 public:
  using Factor = std::function<double(std::int64_t position)>;
  LambdaLR(torch::optim::Optimizer& optimizer, Factor factor, std::optional<std::int64_t> total_steps = std::nullopt);
  /// The same from rates other than those at construction, one per group.
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

/// lr of each group = its lr at construction times gamma to the power of position / step_size, rounded down: Python's
/// torch.optim.lr_scheduler.StepLR. Errors: throws std::invalid_argument for a step_size below 1.
class StepLR final : public LambdaLR {
 public:
  StepLR(torch::optim::Optimizer& optimizer, std::int64_t step_size, double gamma = 0.1);
};

/// As torch does, once a schedule has moved before its optimizer's first step: the first value of it is skipped.
void warn_of_schedule_before_step();

/// One of Accrue's own curves (constant, linear, cosine, WSD, ... with warm-up): the rate of the first group is
/// lr_at(curve, position), and the others keep the proportion to it that they have now. Its total is the curve's, where
/// the curve has an end.
std::shared_ptr<BaseScheduler> make_curve_lr(torch::optim::Optimizer& optimizer, const LrCurve& curve);

/// Rates of all groups, read and set. Errors: throws std::invalid_argument where there are not as many.
std::vector<double> learning_rates(const torch::optim::Optimizer& optimizer);
void set_learning_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& rates);

}  // namespace accrue
