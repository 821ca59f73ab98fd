// SPDX-License-Identifier: Apache-2.0
// One flat tensor in which all gradients live; each parameter's .grad is a view of its place. AccumulateGrad then adds
// in place, so micro-steps accumulate without a second copy, a reduction takes contiguous buckets, and clearing is one
// memset.
//
// The views break when a user drops gradients (zero_grad()'s default), assigns .grad, or runs backward with
// create_graph. mend() notices by the data pointer, copies what is there into the arena and binds the view again.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "accrue/run/shard_layout.h"

namespace accrue {

class GradArena {
 public:
  /// flat: [layout.numel], of the parameters' dtype and device. Binds every parameter.
  GradArena(std::vector<at::Tensor> parameters, FlatLayout layout, at::Tensor flat);

  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const FlatLayout& layout() const { return layout_; }
  const at::Tensor& flat() const { return flat_; }
  at::Tensor bucket(std::size_t index) const;

  /// Makes parameter i's .grad its view again; a dropped gradient counts as zero. True where there was something to
  /// mend.
  bool mend(std::size_t i);
  void zero();

 private:
  void bind(std::size_t i);

  std::vector<at::Tensor> parameters_;
  FlatLayout layout_;
  at::Tensor flat_;
  std::vector<at::Tensor> views_;
};

}  // namespace accrue
