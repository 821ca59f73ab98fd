// SPDX-License-Identifier: Apache-2.0
// A second copy of an own model, in float64 and beside the one that trains: what a gradient would be without the
// rounding, without dropout, or with the statistics of evaluation is computed on it, and nothing of the run changes.
// Thread: training.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "accrue/checkpoint/tensor_archive.h"
#include "train/training.h"

namespace accrue {

/// Sum of a loss over some samples: its gradient in float64, flat, and how many items it has.
struct SampleGradient {
  at::Tensor sum;
  double items = 0.0;
  at::Tensor mean() const { return items > 0.0 ? sum / items : sum; }
};

class Float64Copy {
 public:
  /// What of the model is in training mode.
  enum class Mode {
    training,
    without_dropout,  ///< its dropout layers are in evaluation mode
    evaluation,
  };

  /// Asks the plug-in library for the model once more and copies parameters and buffers. Errors: throws what the
  /// library throws, and std::invalid_argument where it gives another model than before.
  explicit Float64Copy(Training& training);

  /// Each forward begins with the buffers that the training model has now, unless `carry` is set. `key`: the micro-step
  /// whose random numbers are drawn. Errors: throws what the library throws.
  SampleGradient gradient(const std::vector<std::int64_t>& samples, std::int64_t key, Mode mode, bool carry = false);
  bool has_buffers() const { return !buffers_.empty(); }

 private:
  void set_mode(Mode mode);

  Training& training_;
  std::shared_ptr<ModelPart> part_;
  NamedTensors parameters_;   ///< those that train
  NamedTensors own_buffers_;  ///< what else it has
  NamedTensors buffers_;      ///< the same of the training model, as it is now
};

}  // namespace accrue
