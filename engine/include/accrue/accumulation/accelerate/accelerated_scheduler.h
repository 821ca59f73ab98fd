// SPDX-License-Identifier: Apache-2.0
// AcceleratedScheduler: moves the inner scheduler on boundaries whose update was taken, once per rank of the data axis,
// because the schedule was sized for a loader that was not split. Size it in updates times ranks.
// Source: Hugging Face Accelerate 1.15, AcceleratedScheduler. Thread: the training thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "accrue/accumulation/accelerate/accelerated_optimizer.h"
#include "accrue/run/accumulation_window.h"

namespace accrue::accelerate {

class AcceleratedScheduler final : public SchedulerWrapper {
 public:
  /// Made by Accelerator::prepare. A skipped step of one of `optimizers` holds this schedule; empty: of any optimizer.
  AcceleratedScheduler(const std::shared_ptr<BaseScheduler>& inner, AcceleratorImpl& accelerator,
                       std::vector<const AcceleratedOptimizer*> optimizers);

  /// The first rule that applies: without step_scheduler_with_optimizer one inner step; off a boundary none; after a
  /// skipped step none; with split_batches one; else one per rank, as far as total_steps.
  void step(std::optional<std::int64_t> epoch = std::nullopt) override;
  /// Inner steps taken.
  std::int64_t position() const { return schedule_.position; }

  std::string text() const override {
    return "AcceleratedScheduler at position " + std::to_string(position()) + "\n" + inner().text();
  }
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 private:
  AcceleratorImpl& accelerator_;
  std::vector<const AcceleratedOptimizer*> optimizers_;
  FollowingSchedule schedule_;
  bool warned_ = false;
};

}  // namespace accrue::accelerate
