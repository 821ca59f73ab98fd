// SPDX-License-Identifier: Apache-2.0
// Options of an Accelerator. Names and defaults are Accelerate's, unless marked as Accrue's. Thread: values.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#include "accrue/accumulation/accelerate/gradient_accumulation_plugin.h"
#include "accrue/accumulation/grad_scaler.h"
#include "accrue/parallel/distributed_data_parallel.h"

namespace accrue::accelerate {

/// fp16 scales the loss. With fp16 and bf16, operators run in that type if the forward is within
/// Accelerator::autocast(), which replaces Accelerate's wrapping of a prepared model's forward.
enum class MixedPrecision { no, fp16, bf16 };

/// Defects of the original, for comparison with its runs. All are off by default.
struct ReplaySwitches {
  /// zero_grad() clears whenever sync_gradients is true. Before the backward of a boundary micro-step it discards the
  /// whole window, and only that micro-step's gradient reaches the update.
  bool zero_before_backward = false;
  /// adjust_scheduler behaves as documented: every off-boundary call advances the count that the guard on total_steps
  /// reads, so schedules sized in updates freeze early.
  bool adjust_scheduler = false;
  /// The memory search shrinks by a tenth and rounds N down, so the effective batch drifts.
  bool shrink_by_a_tenth = false;
};

struct AcceleratorOptions {
  std::int64_t gradient_accumulation_steps = 1;
  std::optional<GradientAccumulationPlugin> gradient_accumulation_plugin;
  bool step_scheduler_with_optimizer = true;
  bool split_batches = false;  ///< a loader's batch size is for all ranks together, and the schedule advances once
  bool even_batches = true;    ///< samples from the start complete a short tail: all ranks have as many batches
  MixedPrecision mixed_precision = MixedPrecision::no;
  GradScalerOptions grad_scaler;      ///< for fp16
  at::Device device = at::kCPU;       ///< device of prepared modules and of batches of prepared loaders
  bool device_placement = true;       ///< false: nothing is moved
  DataParallelOptions data_parallel;  ///< for every prepared module
  std::uint64_t seed = 0;             ///< of the loaders that shuffle
  ReplaySwitches replay;
  Environment environment;  ///< empty: std::getenv
};

}  // namespace accrue::accelerate
