// SPDX-License-Identifier: Apache-2.0
// What passes between data, models and the trainer, free of torch::nn: a micro-batch, and a loss as sum and count.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace accrue {

/// A micro-batch as the data loaders make it.
/// Shapes: tokens: inputs [B, T] int64, targets [B, T] int64 (ignored where -100). x/y: inputs [B, I], targets [B, O].
/// Labels: inputs [B, T, I], targets [B, T] int64 (ragged sequences have I = 1, labelled tables T = 1).
struct Batch {
  at::Tensor inputs;
  at::Tensor targets;
  std::int64_t samples = 0;  ///< rows that count (0 for an empty micro-step)
  /// What the loss sums over: targets that are not -100, or samples * outputs. Known on the CPU, so that reading it
  /// does not wait for a device.
  std::int64_t items = 0;
};

/// Sum and count of the same items. Shapes: sum [] in the accumulation dtype, with a graph. mean = sum / count.
struct LossSum {
  at::Tensor sum;
  std::int64_t count = 0;
};

}  // namespace accrue
