// SPDX-License-Identifier: Apache-2.0
// AcceleratedScheduler: moves the inner scheduler on boundaries whose update was taken, once per rank of the data axis,
// because the schedule was sized for a loader that was not split. Size it in updates times ranks.
// Source: Hugging Face Accelerate 1.15, AcceleratedScheduler. Thread: the training thread.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <vector>

#include "accrue/accumulation/accelerate/accelerated_optimizer.h"
#include "accrue/accumulation/base_scheduler.h"

namespace accrue::accelerate {

class AcceleratedScheduler final : public BaseScheduler {
 public:
  using Optimizers = std::function<std::vector<const AcceleratedOptimizer*>()>;

  /// Made by Accelerator::prepare. `optimizers` answers those whose skipped steps hold this schedule.
  AcceleratedScheduler(std::shared_ptr<BaseScheduler> inner, SharedWindow window, Optimizers optimizers);

  /// In this order: without step_scheduler_with_optimizer one inner step, no questions asked; off a boundary nothing;
  /// after a skipped step nothing; with split_batches one inner step; else one per rank, none beyond total_steps.
  void step(std::optional<std::int64_t> epoch = std::nullopt) override;

  std::vector<double> get_last_lr() const override { return inner_->get_last_lr(); }
  std::vector<double> get_lr() const { return inner_->get_last_lr(); }
  void print_lr(std::ostream& out) const;
  std::optional<std::int64_t> total_steps() const override { return inner_->total_steps(); }
  /// Inner steps taken.
  std::int64_t position() const { return schedule_.position; }

  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;
  BaseScheduler& inner() { return *inner_; }

 private:
  std::shared_ptr<BaseScheduler> inner_;
  SharedWindow window_;
  Optimizers optimizers_;
  FollowingSchedule schedule_;
  bool warned_ = false;
};

}  // namespace accrue::accelerate
