// SPDX-License-Identifier: Apache-2.0
// What an Accelerator is made with. Names and defaults are Accelerate's; what only Accrue has says so. Thread: values.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#include "accrue/accumulation/accelerate/gradient_accumulation_plugin.h"
#include "accrue/accumulation/grad_scaler.h"
#include "accrue/parallel/distributed_data_parallel.h"

namespace accrue::accelerate {

/// fp16 scales the loss. With fp16 and bf16 operators run in that type where the forward is within
/// Accelerator::autocast(), which stands for what Accelerate does to a prepared model's forward.
enum class MixedPrecision { no, fp16, bf16 };

/// Defects of the original, for comparison with a run of it. All off by default.
struct ReplaySwitches {
  /// zero_grad() clears whenever sync_gradients is true: before the backward of a boundary micro-step it throws the
  /// whole window away, and only that micro-step's gradient reaches the update.
  bool zero_before_backward = false;
  /// adjust_scheduler does what its documentation says: every off-boundary call moves the count that the guard on
  /// total_steps reads, so that schedules sized in updates freeze early.
  bool adjust_scheduler = false;
  /// The memory search shrinks by a tenth and rounds N down, so that the effective batch drifts.
  bool shrink_by_a_tenth = false;
};

struct AcceleratorOptions {
  std::int64_t gradient_accumulation_steps = 1;
  std::optional<GradientAccumulationPlugin> gradient_accumulation_plugin;
  bool step_scheduler_with_optimizer = true;
  bool split_batches = false;  ///< a loader's batch size is that of all ranks together, and the schedule moves once
  bool even_batches = true;    ///< a short tail is completed with samples from the start, so that ranks stay even
  MixedPrecision mixed_precision = MixedPrecision::no;
  GradScalerOptions grad_scaler;      ///< for fp16
  at::Device device = at::kCPU;       ///< where prepared modules and the batches of prepared loaders go
  bool device_placement = true;       ///< false: nothing is moved
  DataParallelOptions data_parallel;  ///< for every prepared module
  std::uint64_t seed = 0;             ///< of the loaders that shuffle
  ReplaySwitches replay;
  Environment environment;  ///< empty: std::getenv
};

}  // namespace accrue::accelerate
