// SPDX-License-Identifier: Apache-2.0
// What an Accelerator holds; shared by its sources.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "accrue/accumulation/accelerate/accelerator.h"

namespace accrue::accelerate {

/// A stretch of autograd's own order of operations, within which a model was kept from reducing.
struct QuietStretch {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct PreparedModel {
  torch::nn::Module* module = nullptr;
  std::unique_ptr<DistributedDataParallel> ddp;
  std::deque<QuietStretch> quiet;
  bool triggered = false;  ///< trigger_sync_in_backward() is in force

  /// A backward of something computed at `when` reduces.
  bool reduces(std::uint64_t when) const;
};

/// What a backward reached: indices of models and optimizers.
struct Reached {
  std::vector<std::size_t> models;
  std::vector<std::size_t> optimizers;
};

struct Accelerator::Impl {
  Impl(const AcceleratorOptions& options, Communicator& communicator);

  /// Reduces the models and notes what the optimizers' gradients have become. `when`: see PreparedModel.
  void after_backward(const Reached& reached, std::uint64_t when);
  Reached everything() const;
  /// A micro-step without a batch: the loop's calls again, or what every loop does.
  void shadow();

  GradientState state;
  Communicator& axis;
  std::unique_ptr<SharedScaler> scaler;  ///< with fp16
  std::vector<PreparedModel> models;
  std::vector<std::unique_ptr<AcceleratedOptimizer>> optimizers;
  std::vector<std::unique_ptr<AcceleratedScheduler>> schedulers;
  Reached last_reached;  ///< of the last backward that had a batch
  MicroPlan plan;
};

}  // namespace accrue::accelerate
