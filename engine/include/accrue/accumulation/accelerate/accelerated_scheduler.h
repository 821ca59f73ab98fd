// SPDX-License-Identifier: Apache-2.0
// AcceleratedScheduler: moves the inner scheduler on boundaries whose update was taken, once per rank of the data axis,
// because the schedule was sized for a loader that was not split. Size it in updates times ranks.
// Source: Hugging Face Accelerate 1.15, AcceleratedScheduler. Thread: the training thread.
#pragma once

#include <memory>
#include <vector>

#include "accrue/accumulation/accelerate/accelerated_optimizer.h"
#include "accrue/run/accumulation_window.h"

namespace accrue::accelerate {

class AcceleratedScheduler final : public SchedulerWrapper {
 public:
  /// Made by Accelerator::prepare. `optimizers`: those whose skipped steps hold this schedule; empty: all.
  AcceleratedScheduler(const std::shared_ptr<BaseScheduler>& inner, AcceleratorImpl& accelerator,
                       std::vector<const AcceleratedOptimizer*> optimizers);

  /// In this order: without step_scheduler_with_optimizer one inner step, no questions asked; off a boundary nothing;
  /// after a skipped step nothing; with split_batches one inner step; else one per rank, none beyond total_steps.
  void step(std::optional<std::int64_t> epoch = std::nullopt) override;
  /// Inner steps taken.
  std::int64_t position() const { return schedule_.position; }

  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 private:
  AcceleratorImpl& accelerator_;
  std::vector<const AcceleratedOptimizer*> optimizers_;
  FollowingSchedule schedule_;
  bool warned_ = false;
};

}  // namespace accrue::accelerate
