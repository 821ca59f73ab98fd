// SPDX-License-Identifier: Apache-2.0
// One flat tensor in which all gradients live; each parameter's .grad is a view of its place. AccumulateGrad then adds
// in place, so micro-steps accumulate without a second copy, a reduction takes contiguous buckets, and clearing is one
// memset.
//
// The arena may be wider than the parameters: half-precision gradients are then added to float32 views. With
// compensation the views are not bound while gradients arrive: each is folded in with the term that carries what was
// rounded off, and the views are bound for those who read .grad.
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
  /// flat: [layout.numel], of the type gradients pile up in, on the parameters' device; compensation: of the same
  /// shape, or undefined. Binds every parameter.
  GradArena(std::vector<at::Tensor> parameters, FlatLayout layout, at::Tensor flat, at::Tensor compensation);

  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const FlatLayout& layout() const { return layout_; }
  const at::Tensor& flat() const { return flat_; }
  const at::Tensor& compensation() const { return compensation_; }
  at::Tensor bucket(std::size_t index) const;

  /// Makes parameter i's .grad its view again; a dropped gradient counts as zero. True where there was something to
  /// mend.
  bool mend(std::size_t i);
  /// With compensation, before a gradient of parameter i arrives: takes the mended .grad away, so that it arrives
  /// alone.
  void set_aside(std::size_t i);
  /// With compensation, once it has arrived: takes it into the sum, Kahan's way, and binds the parameter again.
  void fold(std::size_t i);
  void zero();

 private:
  void bind(std::size_t i);

  std::vector<at::Tensor> parameters_;
  FlatLayout layout_;
  at::Tensor flat_;
  at::Tensor compensation_;
  std::vector<at::Tensor> views_;
  std::vector<at::Tensor> lost_;        ///< views of the compensation
  std::vector<std::int64_t> versions_;  ///< of the views as fold() left them: another one is somebody else's writing
};

}  // namespace accrue
