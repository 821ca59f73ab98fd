// SPDX-License-Identifier: Apache-2.0
// Norms of weights whose parts ranks hold: of whole parameters, for optimizers that scale a step by them, and of the
// whole model, for a run's measurements at its updates.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "accrue/run/events/run_event.h"
#include "train/training.h"

namespace accrue {

/// Completes the sums of squares of the optimizer's segments (CompleteSums): over the data axis under ZeRO, and over
/// the tensor axis for parameters that it divides. Sums in rank order, so all ranks get the same bits. Collective:
/// those axes.
void complete_sums(const Training& training, at::Tensor& sums);

/// Measurements of an update that [run] requests: distance that the weights move, their norm, and zeros of the
/// gradient. Each element of the model counts once, padding rows never. For half-precision weights the float32 copies
/// count, because they are updated.
class UpdateMeasurement {
 public:
  /// Make it before the optimizer steps, with the complete gradient. Keeps the weights if their distance is requested.
  explicit UpdateMeasurement(Training& training);
  /// Call after the step, or after a skipped one. Collective if anything is requested: the model axis, under ZeRO the
  /// world.
  void put_into(Update& update) const;

 private:
  const Training& training_;
  std::vector<FlatRange> ranges_;  ///< of the updated tensor, that this rank counts
  at::Tensor before_;
  double zeros_ = 0.0;
};

}  // namespace accrue
