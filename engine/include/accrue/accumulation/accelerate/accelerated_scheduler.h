// SPDX-License-Identifier: Apache-2.0
// AcceleratedScheduler: advances the inner scheduler on boundaries with an update, once per rank of the data axis,
// because the original sizes schedules for an undivided loader. Size it in updates times ranks.
// Source: Hugging Face Accelerate 1.15, AcceleratedScheduler. Thread: the training thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "accrue/accumulation/accelerate/accelerated_optimizer.h"
#include "accrue/run/window/accumulation_window.h"

namespace accrue::accelerate {

class AcceleratedScheduler final : public SchedulerWrapper {
 public:
  /// Made by Accelerator::prepare. A skipped step of one of `optimizers` holds this schedule; if empty, of any
  /// optimizer.
  AcceleratedScheduler(const std::shared_ptr<BaseScheduler>& inner, AcceleratorImpl& accelerator,
                       std::vector<const AcceleratedOptimizer*> optimizers);

  /// Takes as many inner steps as the first applicable rule says: without step_scheduler_with_optimizer one; off a
  /// boundary none; after a skipped step none; with split_batches one; else one per rank, up to total_steps.
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
