// SPDX-License-Identifier: Apache-2.0
// A second copy of a user's model, in float64, beside the trained one. It computes a gradient without rounding, without
// dropout, or with evaluation statistics, without any effect on the run. Thread: training.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "accrue/checkpoint/tensor_archive.h"
#include "train/training.h"

namespace accrue {

/// Loss sum over some samples: its gradient in float64, flat, and its number of items.
struct SampleGradient {
  at::Tensor sum;
  double items = 0.0;
  at::Tensor mean() const { return items > 0.0 ? sum / items : sum; }
};

class Float64Copy {
 public:
  /// Parts of the model that are in training mode.
  enum class Mode {
    training,
    without_dropout,  ///< its dropout layers are in evaluation mode
    evaluation,
  };

  /// Makes the model once more through the plug-in library, and copies parameters and buffers. Errors: throws the
  /// library's exceptions, and std::invalid_argument if it returns a different model.
  explicit Float64Copy(Training& training);

  /// Each forward begins with the training model's current buffers, unless `carry` is set. `key`: the micro-step that
  /// keys the random numbers. Errors: throws the library's exceptions.
  SampleGradient gradient(const std::vector<std::int64_t>& samples, std::int64_t key, Mode mode, bool carry = false);
  bool has_buffers() const { return !buffers_.empty(); }

 private:
  void set_mode(Mode mode);

  Training& training_;
  std::shared_ptr<ModelPart> part_;
  NamedTensors parameters_;   ///< trainable ones
  NamedTensors own_buffers_;  ///< its other tensors
  NamedTensors buffers_;      ///< the same of the training model, now
};

}  // namespace accrue
