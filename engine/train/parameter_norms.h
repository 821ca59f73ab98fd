// SPDX-License-Identifier: Apache-2.0
// Norms of weights where ranks hold parts of them: of whole parameters, for the optimizers that scale a step by them,
// and of the whole model, for what a run measures at its updates.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "accrue/run/run_event.h"
#include "train/training.h"

namespace accrue {

/// Completes the sums of squares of the optimizer's segments (CompleteSums): over the data axis under ZeRO, and over
/// the tensor axis for parameters that it divides. In the order of the ranks, so all get the same bits. Collective:
/// those axes.
void complete_sums(const Training& training, at::Tensor& sums);

/// What an update does to the model, as far as [run] asks for it: how far the weights move, how long they are, and how
/// much of the gradient is 0. Each element of the model counts once, rows of padding never; of half-precision weights
/// the float32 copies count, which are what is updated.
class UpdateMeasurement {
 public:
  /// Before the optimizer steps: the gradient is complete. Keeps the weights where their way is asked for.
  explicit UpdateMeasurement(Training& training);
  /// After the step, or where there was none. Collective, if anything is asked for: the model axis, under ZeRO the
  /// world.
  void put_into(Update& update) const;

 private:
  const Training& training_;
  std::vector<FlatRange> ranges_;  ///< of what is updated, that this rank counts
  at::Tensor before_;
  double zeros_ = 0.0;
};

}  // namespace accrue
